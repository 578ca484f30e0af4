// Where the service is: everything is found from where this file was, so that any prefix will do.

export const ROOT = new URL("../../../", import.meta.url);

export function apiUrl(path) {
  return new URL(path.replace(/^\//, ""), ROOT);
}

/** The address of a page of the dashboard, such as `jobs/t1`; the overview is the empty one. */
export function pageUrl(view = "", query = {}) {
  const url = new URL(view ? `ui/${view}` : "", ROOT);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url.pathname + url.search;
}

export const jobUrl = (id) => pageUrl(`jobs/${encodeURIComponent(id)}`);
