// A program on the client that openapi-typescript makes of the document: it is type-checked, and then run.
// Each @ts-expect-error is a mistake that the types have to find.

import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Job = components["schemas"]["Job"];

const client = createClient<paths>({ baseUrl: process.argv[2] });

const sent = await client.POST("/enqueue", { body: { id: "typed-1", payload: { to: "ada@example.org" }, max_retries: 3 } });
if (sent.error) throw new Error(sent.error.detail);
const id: string = sent.data.id;

const waited = await client.GET("/jobs/{id}/wait", { params: { path: { id }, query: { timeout: 30 } } });
if (waited.error) throw new Error(`${waited.error.status} ${waited.error.title}`);
const job: Job = waited.data;
const problem: string | null = job.error === null ? null : job.error.message;
if (job.status !== "done" || problem !== null) throw new Error(`the job is ${job.status}: ${problem}`);

const batch = await client.POST("/enqueue/batch", { body: { jobs: [{ payload: 1 }, { payload: 2, delay: 60 }] } });
const listed = await client.GET("/jobs", { params: { query: { status: "done", limit: 10 } } });
if (batch.data?.jobs.length !== 2 || !listed.data?.jobs.some((each) => each.id === id)) throw new Error("jobs are missing");

const put = await client.PUT("/schedules/{name}", {
  params: { path: { name: "nightly" } },
  body: { type: "echo", cron: "0 3 * * *", tz: "Europe/Berlin" },
});
const next: string | undefined = put.data?.next_at[0];
const dropped = await client.DELETE("/schedules/{name}", { params: { path: { name: "nightly" } } });
if (next === undefined || !dropped.response.ok) throw new Error("the schedule has no next tick, or stays");

const missing = await client.GET("/jobs/{id}", { params: { path: { id: "none" } } });
if (missing.error?.type !== "urn:jobpipe:problem:job-not-found") throw new Error("a job is there that was never sent");

export async function wrong(): Promise<void> {
  // @ts-expect-error: a number of retries is no text
  await client.POST("/enqueue", { body: { max_retries: "3" } });
  // @ts-expect-error: there is no such field
  const unknown: components["schemas"]["JobRequest"] = { retries: 3 };
  await client.POST("/enqueue", { body: unknown });
  // @ts-expect-error: there is no such status
  await client.GET("/jobs", { params: { query: { status: "finished" } } });
  // @ts-expect-error: there is no such call
  await client.GET("/tasks");
  // @ts-expect-error: a schedule has a type
  await client.PUT("/schedules/{name}", { params: { path: { name: "nightly" } }, body: { every: 60 } });
}

console.log(`${job.id} is ${job.status}`);
