// Calls of the service, with the token where there is one; problems become errors that can be shown.

import { apiUrl, ROOT } from "./base.js";
import { askForToken } from "./token.js";

const KEY = `jobpipe.token:${ROOT.pathname}`;

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

/** A fetch with the token; where the service wants another one, the user is asked, once for all calls. */
export async function call(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = new Headers(options.headers);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const response = await fetch(apiUrl(path), { cache: "no-store", ...options, headers });
    const isWrong = response.status === 401 || (response.status === 429 && token !== null);
    if (!isWrong) return response;
    // Why compare: another call may have asked meanwhile, and the user answered.
    if (sessionStorage.getItem(KEY) === token) {
      const detail = token === null ? "" : await detailOf(response);
      sessionStorage.setItem(KEY, await askForToken(detail));
    }
  }
}

export const get = async (path, query = {}, options = {}) => parse(await getText(path, query, options));

/** The same, but the answer is as it was written. */
export async function getText(path, query = {}, options = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given).toString();
  const response = await call(search ? `${path}?${search}` : path, options);
  if (!response.ok) throw new Problem(response.status, await detailOf(response));
  return response.text();
}

export const post = (path, body) => postText(path, body && JSON.stringify(body));

/** The same for a body that is JSON already: so its long numbers stay what they are. */
export const postText = async (path, body) => parse(await (await posted(path, body)).text());

/** The answer itself, where its status tells something. */
export async function posted(path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await call(path, { method: "POST", headers, body });
  if (!response.ok) throw new Problem(response.status, await detailOf(response));
  return response;
}

export async function remove(path) {
  const response = await call(path, { method: "DELETE" });
  if (!response.ok) throw new Problem(response.status, await detailOf(response));
}

/** JSON in which numbers that JavaScript cannot hold, such as long ids, stay what they were. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    const source = context?.source;
    const isSame = typeof value !== "number" || source === undefined || Number.isSafeInteger(value) || !/^-?\d+$/.test(source);
    return isSame || !JSON.rawJSON ? value : JSON.rawJSON(source);
  });
}

async function detailOf(response) {
  try {
    return (await response.json()).detail ?? response.statusText;
  } catch {
    return `the service answered ${response.status} ${response.statusText}`;
  }
}
