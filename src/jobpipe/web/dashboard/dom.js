// Elements as plain values, and `patch`, which brings the page to what they say.
// Why: a page that is live is drawn again and again; what stays the same keeps its focus, its scroll and its selection.
// Strings become text nodes, here and nowhere else: there is no way to put in markup.

const SVG = "http://www.w3.org/2000/svg";
const drawn = new WeakMap(); // node → the value that it shows

export function h(tag, props, ...children) {
  const { key = null, ...rest } = props ?? {};
  return { tag, key, props: rest, children: flat(children) };
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "object" ? child : String(child)));
}

export function patch(parent, ...children) {
  patchChildren(parent, flat(children));
}

function patchChildren(parent, wanted) {
  const keyed = new Map();
  const loose = [];
  for (const node of parent.childNodes) {
    const key = drawn.get(node)?.key ?? null;
    if (key === null) loose.push(node);
    else keyed.set(key, node);
  }
  const nodes = wanted.map((value) => {
    const node = (value.key ?? null) === null ? takeLike(loose, value) : keyed.get(value.key);
    return node && isLike(node, value) ? node : null;
  });
  // Why first: what stays must not be moved, or it would lose the focus.
  const kept = new Set(nodes);
  for (const node of [...parent.childNodes]) if (!kept.has(node)) node.remove();
  let place = parent.firstChild;
  wanted.forEach((value, index) => {
    const node = nodes[index];
    if (node) update(node, value);
    if (node && node === place) place = place.nextSibling;
    else parent.insertBefore(node ?? create(value, parent.namespaceURI), place);
  });
}

function takeLike(loose, value) {
  // Why no further: unkeyed children keep their order; one of them may have come or gone.
  const index = loose.slice(0, 2).findIndex((node) => isLike(node, value));
  return index < 0 ? null : loose.splice(0, index + 1).at(-1);
}

function isLike(node, value) {
  if (typeof value === "string") return node.nodeType === Node.TEXT_NODE;
  const before = drawn.get(node);
  return before !== undefined && before.tag === value.tag && before.key === value.key;
}

function create(value, namespace) {
  if (typeof value === "string") return document.createTextNode(value);
  const inner = value.tag === "svg" ? SVG : namespace === SVG ? SVG : null;
  const node = inner ? document.createElementNS(SVG, value.tag) : document.createElement(value.tag);
  setProps(node, {}, value.props);
  patchChildren(node, value.children);
  choose(node, value);
  drawn.set(node, value);
  value.props.made?.(node);
  return node;
}

function update(node, value) {
  if (typeof value === "string") {
    if (node.data !== value) node.data = value;
    return;
  }
  setProps(node, drawn.get(node).props, value.props);
  patchChildren(node, value.children);
  choose(node, value);
  drawn.set(node, value);
}

function choose(node, { tag, props }) {
  // Why last: a select has no value before it has its options, and forgets their attributes once it was used.
  if (tag === "select" && node.value !== props.chosen) node.value = props.chosen;
}

function setProps(node, before, wanted) {
  for (const name of Object.keys(before)) if (!(name in wanted)) setProp(node, name, before[name], null);
  for (const [name, value] of Object.entries(wanted)) {
    // Why against what was wanted before: what the user has done since, such as opening a fold, stays.
    if (before[name] !== value) setProp(node, name, before[name], value);
  }
}

function setProp(node, name, before, value) {
  if (name === "made" || name === "chosen") return;
  if (name.startsWith("on")) {
    const event = name.slice(2);
    if (before) node.removeEventListener(event, before);
    if (value) node.addEventListener(event, value);
  } else if (name === "vars") {
    // Why not an attribute: the policy of the page forbids style attributes.
    for (const [variable, text] of Object.entries(value ?? {})) node.style.setProperty(variable, text);
  } else if (name === "value" && node.matches("input, textarea")) {
    if (node.value !== value) node.value = value ?? "";
  } else if (name === "checked") {
    node.checked = Boolean(value);
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}
