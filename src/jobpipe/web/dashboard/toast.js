// Short words about what was just done, at the edge of the page, read out by screen readers.

const SHOWN_FOR = 6000;

export function toast(text, kind = "info") {
  const item = document.createElement("p");
  item.className = `toast ${kind}`;
  item.textContent = text;
  document.getElementById("toasts").append(item);
  setTimeout(() => item.remove(), SHOWN_FOR);
}

/** Do it, and say how it went. */
export async function attempt(action, said) {
  try {
    const result = await action();
    if (said) toast(typeof said === "function" ? said(result) : said, "good");
    return result;
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  }
}
