// JSON as text, for what must stay as it was written: JavaScript would turn 1.0 into 1, and sort keys that are numbers.

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const DEEPER = { "{": 1, "[": 1, "}": -1, "]": -1 };

/** Why it is no JSON; null if it is. */
export function problemOf(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
}

/** A field of an object, laid out in lines. */
export function fieldOf(text, name) {
  const tokens = text.match(TOKENS);
  const key = JSON.stringify(name);
  let depth = 0;
  let begin = null;
  for (const [index, token] of tokens.entries()) {
    const isEnd = depth === 1 && (token === "," || token === "}");
    if (isEnd && begin !== null) return inLines(tokens.slice(begin, index));
    if (depth === 1 && token === key && tokens[index + 1] === ":") begin = index + 2;
    depth += DEEPER[token] ?? 0;
  }
  return null;
}

function inLines(tokens) {
  const parts = [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, index) => {
    const step = DEEPER[token] ?? 0;
    depth += step;
    const isEmpty = step > 0 ? DEEPER[tokens[index + 1]] < 0 : DEEPER[tokens[index - 1]] > 0;
    if (step < 0 && !isEmpty) parts.push(line());
    parts.push(token === ":" ? ": " : token);
    if (token === "," || (step > 0 && !isEmpty)) parts.push(line());
  });
  return parts.join("");
}
