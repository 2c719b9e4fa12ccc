// Drives the live page of a server whose orchestrator asks sub-agents: what a person sees of a stop,
// of one that was not asked, of one whose data failed and of a failed turn, before and after a reload.
// Usage: node subagents.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, log, say, until } = controls(page);

const state = (name) => page.locator("#log .tool", { has: page.locator("b", { hasText: name }) }).last().getAttribute("data-state");
const running = () => page.locator(".tool[data-state=running] b").allInnerTexts();
// The page forgets nothing when it is loaded anew.
async function sameAfterReload(what) {
  const before = await log(), listed = await page.locator("#events b").allInnerTexts();
  await page.reload();
  await live();
  await until(`${what} after a reload`, async () => (await log()) === before);
  const terminals = (names) => names.filter((name) => /^turn\.(started|completed|cancelled)$/.test(name));
  await until("the list of events", async () => {
    const now = await page.locator("#events b").allInnerTexts();
    return JSON.stringify(terminals(now)) === JSON.stringify(terminals(listed));
  });
}
// Every status that the page shows.
async function watchStatus() {
  await page.evaluate(() => {
    window.statuses = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) if (node.id === "status") window.statuses.push(node.innerText);
    }).observe(document.querySelector("#log"), { childList: true });
  });
  return () => page.evaluate(() => window.statuses);
}
// Reloads the page while its reads of the log fail, of which the browser complains.
async function withoutLog(check) {
  await page.route("**/events?*", (route) => route.abort());
  await page.reload();
  await live();
  await check();
  await until("the complaints", async () => complaints.length === 2);
  assert.match(complaints.splice(0).join("\n"), /^(console: Failed to load resource: [^\n]*\n?){2}$/);
  await page.unroute("**/events?*");
}

try {
  await page.goto(url);
  await live();

  // Two sub-agents run; the page is loaded anew, without and with the log, and they still do.
  await say("stall");
  await until("two sub-agents", async () => (await running()).length === 2);
  await withoutLog(() => until("two sub-agents of the snapshot", async () => (await running()).length === 2));
  await page.reload();
  await live();
  await until("two sub-agents again", async () => (await running()).length === 2);
  assert.deepEqual((await running()).sort(), ["ask_rewards", "ask_shop"]);

  // They are stopped: the receipt is there, also after a reload, and the keyboard is not lost.
  await page.locator("#stop").focus();
  await page.keyboard.press("Enter");
  await until("the receipt", async () => (await page.locator(".receipt").count()) === 1);
  await idle();
  assert.equal(await page.evaluate(() => document.activeElement.id), "input", "the focus after a stop");
  assert.ok((await page.locator(".receipt li").allInnerTexts()).some((line) => line.startsWith("sub-agent shop: stopped")), await log());
  assert.ok(!(await log()).includes("user_cancel"), "a reason that is a code");
  await sameAfterReload("the stop");

  // One too many is not asked, which is no failure.
  await say("many");
  await until("the answer to many", async () => (await log()).includes("Two of three."));
  await idle();
  assert.equal(await state("ask_support"), "skipped");
  assert.match(await log(), /ask_support\s*not asked: at most 2 at once/);
  assert.equal(await page.locator(".tool[data-state=failed]").count(), 0, await log());
  await sameAfterReload("the one that was not asked");

  // A data service fails the shop, which answers all the same.
  await say("data");
  await until("the answer without data", async () => (await log()).includes("Nothing found."));
  await idle();
  assert.equal(await state("ask_shop"), "partial");
  assert.match(await log(), /ask_shop\s*done in \d+ ms, some of its data could not be loaded/);
  assert.match(await log(), /search_offers\s*its data service answered with an error/);
  const card = await page.locator("#log .tool", { has: page.locator("b", { hasText: "ask_shop" }) }).last().innerText();
  assert.ok(!/[a-z]_[a-z]/.test(card.replace("ask_shop", "")), `a code on the card: ${card}`);
  assert.match(await log(), /Something is missing from this answer\./);
  await sameAfterReload("the missing data");

  // A call that fails and is repeated says so.
  const again = await watchStatus();
  await say("flaky");
  await until("the second answer", async () => (await log()).includes("There I am."));
  await idle();
  assert.deepEqual(await again(), ["The model did not answer; trying again…"]);

  // A failed call is one red sentence without codes; the code is behind a fold.
  await page.evaluate(() => {
    window.alarms = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) if (node.matches?.(".note.bad")) window.alarms.push(node.innerText);
    }).observe(document.querySelector("#log"), { childList: true });
  });
  const statuses = await watchStatus();
  await say("broken");
  await until("the failure", async () => (await page.locator(".note.bad").count()) === 1);
  await idle();
  const alarms = await page.evaluate(() => window.alarms);
  assert.equal(alarms.length, 1, String(alarms));
  assert.deepEqual(await statuses(), [], "nothing was tried again");
  assert.match(alarms[0], /^The turn failed\. /);
  assert.ok(!/[A-Z]{2,}_|[a-z]_[a-z]/.test(await page.locator(".note.bad").innerText()), "no code in the sentence");
  await page.locator(".note.bad summary").click();
  assert.match(await page.locator(".note.bad code").innerText(), /^[A-Z_]+/);
  await page.locator(".note.bad summary").click();
  await sameAfterReload("the failure");
  await withoutLog(() => until("the failure of the snapshot", async () => (await page.locator(".note.bad").count()) === 1));

  assert.deepEqual(complaints, []);
  console.log(JSON.stringify({ alarms: alarms.length, asked: 6 }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
}
