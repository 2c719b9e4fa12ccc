// Drives the live page of a server that runs the workshop pack, with a worker that stalls, a tool
// input that streams slowly and two approvals of one turn. The page is reloaded while work is open
// and its reads of the log fail: the snapshot alone shows the work.
// Usage: node snapshot.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, log, say, until } = controls(page);

const running = () => page.locator(".tool[data-state=running]").allInnerTexts();
const receipts = () => page.locator(".receipt").allInnerTexts();
const allow = () => page.locator(".ask button", { hasText: "Allow" });
async function stop() {
  const before = (await receipts()).length;
  await page.locator("#stop").click();
  await until("the receipt", async () => (await receipts()).length === before + 1);
  await idle();
}

// The reads of the page that a snapshot makes needless: the log, and a turn.
const PAST_READ = (address) => /\/sessions\/[^/]+\/events$|\/turns\/[^/]+$/.test(address.pathname);
const failures = [(route) => route.abort(), (route) => route.fulfill({ status: 410, json: { detail: "expired" } })];
let failed = 0;
async function reloadWithoutPast(check) {
  for (const fail of failures) {
    const before = failed;
    const handler = (route) => {
      failed += 1;
      return fail(route);
    };
    await page.route(PAST_READ, handler);
    await page.reload();
    await live();
    await check();
    await until("the failed reads", async () => failed > before);
    await until("the note of it", async () => (await log()).includes("could not be read; reload the page"));
    await page.unroute(PAST_READ, handler);
  }
}

try {
  await page.goto(url);
  await live();

  // A running program, and the receipt of its stop.
  await say("nap");
  await until("the program", async () => (await running()).length === 1);
  await reloadWithoutPast(() => until("the program again", async () => (await running()).join().startsWith("nap")));
  assert.match((await running()).join(), /^nap\s*running…/);
  assert.equal(await page.locator("#stop").isEnabled(), true);
  await stop();
  const stopped = await receipts();
  await reloadWithoutPast(() => until("the receipt again", async () => (await receipts()).join() === stopped.join()));
  assert.match(await log(), /Stopped in [^\n]*, nothing left running/);
  assert.deepEqual(await running(), []);

  // A worker, with the way into its session.
  await say("look into tea");
  await until("the worker", async () => (await running()).join().includes("Worker running…"));
  const way = await page.locator(".tool a").getAttribute("href");
  await reloadWithoutPast(() => until("the worker again", async () => (await running()).join().includes("Worker running…")));
  assert.equal(await page.locator(".tool a").getAttribute("href"), way);
  await stop();

  // A tool input in the middle: what is shown is always the beginning of the raw text.
  const words = `count ${"some words and \"quotes\" ".repeat(40)}`.trim(), whole = JSON.stringify({ text: words });
  const piece = () => page.locator(".tool", { hasText: "count_words" }).last().locator("code").first().innerText();
  const isPending = async () => (await page.locator(".tool").last().getAttribute("data-state")) === "pending";
  await say(words);
  await until("a piece of the input", async () => (await isPending()) && (await piece()).length > 20);
  await page.reload();
  await live();
  await until("the input again", async () => (await page.locator(".tool").count()) === 3);
  const first = await piece();
  assert.ok(whole.startsWith(first) && first.length < whole.length, first);
  let longest = "";
  while (await isPending()) {
    const now = await piece();
    assert.ok(whole.startsWith(now) && now.length >= longest.length, now);
    longest = now;
  }
  assert.ok(longest.length > first.length, "the input has grown");
  await until("the count", async () => (await log()).includes("Your message has"));
  await idle();

  // A paused turn: its card is there, and a yes continues it.
  await say("take a note: buy milk");
  await until("the question", async () => (await allow().count()) === 1);
  await idle();
  await reloadWithoutPast(async () => {
    await until("the question again", async () => (await allow().count()) === 1);
    assert.match(await log(), /The turn waits for approval: allow take_note to run\?/);
  });
  await until("a yes", async () => await allow().isEnabled());
  await allow().click();
  await until("the answer", async () => (await log()).includes("Noted."));
  assert.equal(await page.locator(".ask span").innerText(), "Allowed by user.");
  await idle();

  // One of two approvals is decided: the other one stays open, and both stand where they stood.
  await say("pair");
  await until("two questions", async () => (await allow().count()) === 2);
  await idle();
  await page.locator(".ask button", { hasText: "Reject" }).first().click();
  await until("the first answer", async () => (await page.locator(".ask span").allInnerTexts()).at(-1) === "Rejected by user.");
  const rows = async () => (await page.locator(".ask .row").allInnerTexts()).slice(1).map((row) => row.split(/\s+/).join(" "));
  await page.reload();
  await live();
  await until("both again", async () => (await rows()).length === 2);
  assert.deepEqual(await rows(), ["Rejected by user.", "Allow Reject"]);
  assert.match(await log(), /Reject\s+The turn waits for approval: allow take_note to run\?$/);
  await reloadWithoutPast(() => until("the open one", async () => (await allow().count()) === 1));
  await until("a yes to the second", async () => await allow().isEnabled());
  await allow().click();
  await until("the end of the pair", async () => (await log()).includes("Both are decided."));
  await idle();

  // A busy server is asked again, and one that has no such cursor is asked for all that it retains.
  let busy = 0, expired = 0;
  await page.route(PAST_READ, (route) => {
    const { searchParams } = new URL(route.request().url());
    if (searchParams.has("types") && busy++ === 0) return route.fulfill({ status: 429, headers: { "retry-after": "1" }, json: {} });
    if (!searchParams.has("since")) return route.continue();
    expired += 1;
    return route.fulfill({ status: 410, json: {} });
  });
  await page.reload();
  await live();
  await until("the outcome", async () => (await page.locator(".ask span").allInnerTexts()).join() === "Allowed by user.,Rejected by user.,Allowed by user.");
  await until("the events", async () => (await page.locator("#events b").allInnerTexts()).includes("approval.resolved"));
  assert.deepEqual([busy, expired], [2, 1]);
  assert.equal((await receipts()).length, 2);
  assert.equal(await page.locator(".note", { hasText: "could not be read" }).count(), 0);

  // A log of too many pages: what came last is read all the same, and the page says that some is not.
  await page.route(PAST_READ, (route) => {
    const { searchParams } = new URL(route.request().url()), endless = "evt_00010000000001";
    const isBeginning = !searchParams.has("since") || searchParams.get("since") === endless;
    if (searchParams.has("types") && isBeginning) return route.fulfill({ json: { events: [], next: endless } });
    return route.continue();
  });
  await page.reload();
  await live();
  await until("the note of it", async () => (await log()).includes("the results of some older turns are not shown"));
  assert.deepEqual(await page.locator(".ask span").allInnerTexts(), ["Allowed by user.", "Rejected by user.", "Allowed by user."]);
  assert.equal((await receipts()).length, 2);

  // The browser complains of the reads that were made to fail, and of nothing else.
  assert.deepEqual(complaints.filter((text) => !text.startsWith("console: Failed to load resource: ")), []);
  console.log(JSON.stringify({ receipts: 2, failed }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
}
