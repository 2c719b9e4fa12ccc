// Drives the live page of a server that runs the workshop pack: a stop with its receipt, a worker
// with a way into its session, and questions that wait for a person.
// Usage: node workshop.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { log, say, until } = controls(page);

const badge = (text) => page.waitForFunction((text) => document.querySelector("#badge").textContent === text, text);
const idle = () => page.waitForFunction(() => document.querySelector("#stop").textContent === "Stop" && document.querySelector("#stop").disabled);
const allow = () => page.locator(".ask button", { hasText: "Allow" }).last();
const ends = async () => (await page.locator(".note").allInnerTexts()).filter((note) => note.includes("topped")).length;

// The page forgets nothing when it is loaded anew.
async function sameAfterReload(what) {
  const before = await log();
  await page.reload();
  await badge("live");
  await until(`${what} after a reload`, async () => (await log()) === before);
}

try {
  await page.goto(url);
  await badge("live");

  // A program that ignores TERM is stopped: requested, counted, and told by name.
  const watchButton = () => {
    window.said = [];
    const button = document.querySelector("#stop");
    new MutationObserver(() => window.said.push(button.textContent)).observe(button, { childList: true, characterData: true, subtree: true });
  };
  await say("nap");
  await until("the program", async () => (await log()).includes("running…"));
  // The page is loaded anew, and the program still runs.
  await page.reload();
  await badge("live");
  await until("the program again", async () => (await page.locator(".tool[data-state=running] i").allInnerTexts()).includes("running…"));
  await page.evaluate(watchButton);
  await page.waitForTimeout(1_000); // it has begun to ignore TERM
  await page.locator("#stop").click();
  await until("what is waited for", async () => (await page.locator("#status").allInnerTexts()).includes("Stopping; waiting for nap to end…"));
  await until("the receipt", async () => (await page.locator(".receipt").count()) === 1);
  await idle();
  const steps = await page.evaluate(() => window.said);
  assert.ok(steps.includes("Stop requested") && steps.includes("Stopping 0/1"), String(steps));
  const notes = await page.locator(".note").allInnerTexts();
  assert.ok(notes.some((note) => /^Stopped in \d+\.\d s, nothing left running$/.test(note)), String(notes));
  const lines = await page.locator(".receipt li").allInnerTexts();
  assert.match(lines.join("\n"), /^tool nap: killed after \d+\.\d s\nprocess of nap: killed after \d+\.\d s$/);
  assert.equal(await page.locator(".tool[data-state=cancelled] b").innerText(), "nap");
  await sameAfterReload("the receipt");

  // A stop before the message has arrived: the turn ends before it has begun anything.
  const heard = page.waitForResponse((response) => response.url().endsWith("/cancel"));
  await page.route("**/turns", async (route) => {
    await heard;
    await route.continue();
  }, { times: 1 });
  await say("nap");
  await page.locator("#stop").click();
  await until("the early stop", async () => (await ends()) === 2);
  await idle();
  assert.equal(await page.locator(".tool").count(), 1, "nothing began");

  // A stop that the server could not take is asked for again.
  let refused = 0;
  await page.route("**/cancel", (route) => {
    refused += 1;
    return route.fulfill({ status: 503, json: { detail: "not now" } });
  }, { times: 1 });
  await say("nap");
  await until("the second program", async () => (await page.locator(".tool[data-state=running]").count()) === 1);
  await page.locator("#stop").click();
  await until("the second stop", async () => (await ends()) === 3);
  await idle();
  assert.equal(refused, 1);
  // The browser complains of it, sooner or later.
  await until("the complaint", async () => complaints.length > 0);
  assert.match(complaints.splice(0).join("\n"), /^console: [^\n]* 503 [^\n]*$/, "the one that was made");

  // A tool waits for a person; the page is loaded anew, and still asks.
  await say("take a note: buy <b>milk</b>");
  await until("the question", async () => (await page.locator(".ask button").count()) === 2);
  assert.ok((await log()).includes("The turn waits for approval: allow take_note to run?"));
  await idle();
  await page.reload();
  await badge("live");
  await until("the question again", async () => (await page.locator(".ask button").count()) === 2);
  await until("the input", async () => (await page.locator(".whole").innerText()).includes("<b>milk</b>"));
  await until("a yes", async () => await allow().isEnabled());
  await allow().focus();
  await page.keyboard.press("Enter");
  await until("the answer", async () => (await log()).includes("Noted."));
  assert.equal(await page.locator(".ask span").innerText(), "Allowed by user.");
  assert.ok(!(await log()).includes("The turn waits for approval"), "it does not wait any more");
  assert.equal(await page.evaluate(() => document.activeElement.id), "input", "the focus after an answer");
  assert.equal(await page.locator("article.user").count(), 4, "answers are no message");
  await idle();
  await page.reload();
  await badge("live");
  await until("the outcome again", async () => (await page.locator(".ask span").allInnerTexts()).join() === "Allowed by user.");
  assert.equal(await page.locator(".ask button").count(), 0);
  await until("the events again", async () => (await page.locator("#events b").allInnerTexts()).includes("approval.resolved"));
  assert.ok(!(await log()).includes("The turn waits for approval"), "nor after a reload");

  // The whole input is shown, with a mark that turns text around written out, and there is no yes
  // before its end was in view.
  const hidden = "; rm -rf ~ \u202e\u2066evil\u200b\u2028end";
  await say(`take a note: milk${" x".repeat(20_000)}${hidden}`);
  await until("the long question", async () => (await page.locator(".ask button").count()) === 2);
  await until("the long input", async () => (await page.locator(".whole").last().innerText()).includes("rm -rf"));
  const whole = await page.locator(".whole").last().innerText();
  assert.ok(whole.includes(String.raw`; rm -rf ~ \u{202e}\u{2066}evil\u{200b}\u{2028}end"`), whole.slice(-200));
  assert.ok(whole.replace(/\s/g, "").length > 20_000, "nothing is left out");
  await page.locator(".whole").last().scrollIntoViewIfNeeded();
  await page.waitForTimeout(2_000); // longer than the moment after which a yes is possible
  assert.equal(await allow().isDisabled(), true, "the end was not in view");
  await allow().evaluate((button) => { button.disabled = false; button.click(); });
  await page.waitForTimeout(500);
  assert.equal(await page.locator(".ask button").count(), 2, "a yes that was not possible does not count");
  const text = await page.locator("#log").innerText();
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u2028]/.test(text), "no mark of direction is in the page");
  await allow().evaluate((button) => { button.disabled = true; });
  await page.locator(".whole i").last().evaluate((end) => end.scrollIntoView());
  await until("a yes at the end", async () => await allow().isEnabled());
  const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/approvals"));
  await allow().click();
  assert.match((await sent).postDataJSON().input_sha256, /^[0-9a-f]{64}$/);
  await until("the long note", async () => (await page.locator(".ask span").count()) === 2);
  await idle();

  // Someone else says no.
  await say("take a note: sell milk");
  await until("the second question", async () => (await page.locator(".ask button").count()) === 2);
  const session = new URL(page.url()).hash.slice(1);
  const turns = await (await page.request.get(`${url}/sessions/${session}/turns?limit=1`)).json();
  const turn = turns.turns[0].turn_id;
  const { approvals } = await (await page.request.get(`${url}/turns/${turn}/approvals`)).json();
  const data = { approval_id: approvals[0].approval_id, decision: "reject", comment: "<i>not today</i>" };
  assert.equal((await page.request.post(`${url}/turns/${turn}/approvals`, { data })).status(), 202);
  await until("their answer", async () => (await page.locator(".ask span").allInnerTexts()).at(-1) === "Rejected by user. “<i>not today</i>”");
  await until("the end", async () => (await log()).includes("I did not write it down."));
  await idle();
  assert.match(await log(), /take_note\s*not run: rejected/);
  await sameAfterReload("the rejection");

  // A worker: its session opens on the same page, and the way back leads back.
  await say("look into tea");
  await until("the worker", async () => (await page.locator(".tool a").count()) === 1);
  const worker = (await page.locator(".tool a").getAttribute("href")).slice(1);
  await page.locator(".tool a").click();
  await page.waitForFunction((id) => document.querySelector("#session").textContent === id, worker);
  await badge("live");
  await until("the worker's words", async () => (await log()).includes("For more than that you need a real model."));
  await page.locator("#parent").click();
  await page.waitForFunction((id) => document.querySelector("#session").textContent === id, session);
  await badge("live");
  await until("what the worker said", async () => (await log()).includes("The researcher says: I looked at it"));
  await until("the way in again", async () => (await page.locator(`.tool a[href="#${worker}"]`).count()) === 1);
  assert.equal(await page.locator("#parent").isHidden(), true);

  assert.deepEqual(complaints, []);
  console.log(JSON.stringify({ receipt: lines.length, asked: 3, worker }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
}
