// Numbers and counts in words.

const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => plain.format(value);
export const compact = (value) => (value < 10_000 ? plain.format(value) : short.format(value));

/** `1 job`, `3 jobs`. */
export const count = (value, noun) => `${plain.format(value)} ${value === 1 ? noun : `${noun}s`}`;

/** A rate: two figures are enough. */
export function rate(value) {
  if (value === 0) return "0";
  if (value < 10) return value.toFixed(1);
  return compact(Math.round(value));
}

/** Bytes as megabytes, which is what the memory of a process comes to. */
export const megabytes = (value) => `${plain.format(Math.round(value / 2 ** 20))} MB`;

export const percent = (value) => `${Math.round(value * 100)} %`;

/** `a, b and c`. */
export function list(words) {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
