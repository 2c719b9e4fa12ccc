// Drives the live page of a server that asks for tokens: entry, refusals, a revoked and an expired
// token in the middle of an answer, another person, sign-out.
// Usage: node access.mjs URL PROFILE_FOLDER
// Writes a line `create PRINCIPAL SCOPE [SECONDS]` or `revoke TOKEN` for each thing that it needs done,
// and reads one line for it: the token, or `done`. Ends with 0 and one line of JSON, or with 1 and what
// was wrong.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function demand(line) {
  console.log(line);
  return (await answers.next()).value;
}

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, log, say, until } = controls(page);
await page.addInitScript(() => {
  document.addEventListener("securitypolicyviolation", (violation) => {
    console.error(`policy: ${violation.violatedDirective} ${violation.blockedURI}`);
  });
});
const subscribes = [], addresses = []; // frames, and URLs of requests and streams
page.on("request", (request) => addresses.push(request.url()));
page.on("websocket", (socket) => {
  addresses.push(socket.url());
  socket.on("framesent", ({ payload }) => {
    const frame = JSON.parse(payload);
    if (frame.type === "subscribe") subscribes.push(frame);
  });
});

const field = page.getByLabel("Access token"), why = page.locator("#why");
const last = () => page.locator("article.assistant .text").last().innerText();
const kept = () => page.evaluate(() => ({ ...sessionStorage }));
// The entry is shown with these words, has the focus, and is empty.
async function entryWith(words) {
  await until(`the entry with “${words}”`, async () => (await why.innerText()).includes(words));
  assert.ok(await field.isVisible(), "the entry");
  assert.equal(await page.locator("#input").isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "token");
  assert.equal(await page.locator("#badge").innerText(), "signed out");
}
async function enter(token) {
  await field.fill(token);
  await field.press("Enter");
}
const session = () => new URL(page.url()).hash.slice(1);
async function stored(token) {
  const answer = await page.request.get(`${url}/sessions/${session()}/messages?limit=200`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status(), 200);
  const { messages } = await answer.json();
  return messages.map((message) => message.content.map((block) => block.text ?? "").join(""));
}
const shown = () => page.locator("#log article").evaluateAll((all) => all.map((one) => [...one.querySelectorAll(":scope > .text")].map((text) => text.textContent).join("")));
async function isNowhere(tokens) {
  const places = await page.evaluate(() => {
    const elements = [...document.querySelectorAll("*")];
    const attributes = elements.flatMap((element) => [...element.attributes].map((each) => each.value));
    const values = elements.map((element) => element.value ?? "");
    return JSON.stringify([{ ...localStorage }, document.cookie, location.href, history.state, document.title, window.name, attributes, values, document.documentElement.outerHTML]);
  });
  const cookies = JSON.stringify(await context.cookies());
  for (const token of tokens) {
    for (const place of [places, cookies, ...addresses]) assert.ok(!place.includes(token), "a token is where it must not be");
  }
}

try {
  const first = await demand("create ann own"), second = await demand("create ann own");
  const metrics = await demand("create ann metrics"), bobs = await demand("create bob own");

  // The entry comes by itself, and a keyboard is enough.
  await page.goto(url);
  await entryWith("needs an access token");
  assert.deepEqual([await field.getAttribute("type"), await field.getAttribute("autocomplete")], ["password", "off"]);
  assert.equal(await page.getByRole("form", { name: "Sign in" }).count(), 1);
  assert.equal(await page.getByRole("alert").innerText(), await why.innerText());
  assert.equal(await page.getByRole("button", { name: "Sign out" }).count(), 0);
  for (const wrong of ["twt_wrong", "not a token", "tökén"]) {
    await enter(wrong);
    await entryWith("not valid here");
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    assert.deepEqual(await kept(), {});
  }
  await enter(metrics);
  await entryWith("does not allow conversations");
  assert.deepEqual(await kept(), {});

  // With a token a turn streams.
  await page.keyboard.press("Control+a");
  await page.keyboard.type(first);
  await page.keyboard.press("Enter");
  await live();
  assert.equal(await page.evaluate(() => document.activeElement.id), "input");
  assert.deepEqual(await kept(), { "turnwire.token": first });
  await say("hello");
  await until("the answer", async () => (await log()).includes("hi"));
  await idle();

  // The token is revoked in the middle of an answer, which goes on with another one.
  await say("slow");
  await until("words", async () => (await last()).length > 20);
  const before = (await last()).length;
  subscribes.length = 0;
  assert.equal(await demand(`revoke ${first}`), "done");
  await entryWith("was revoked");
  assert.deepEqual(await kept(), {});
  // Escape in the entry stops nothing; what was shown stays.
  await page.keyboard.press("Escape");
  assert.ok((await last()).length >= before, "the words stay");
  await enter(first);
  await entryWith("not valid here");
  await enter(second);
  await live();
  assert.ok(await page.locator("#stop").isEnabled(), "the answer is not over");
  await idle();
  assert.deepEqual(subscribes.map((frame) => [frame.snapshot, typeof frame.since]), [[false, "string"]]);
  assert.deepEqual(await shown(), await stored(second));
  assert.equal((await shown()).at(-1), "one two three four five six seven eight nine ten ".repeat(10));
  await isNowhere([first, second, metrics]);

  // The tab knows the token after a reload, and another one does not.
  await page.reload();
  await live();
  const other = await context.newPage();
  await other.goto(url);
  await other.locator("#why").getByText("needs an access token").waitFor();
  await other.close();

  // A message that is sent with a token that has ended arrives once, after the entry.
  const short = await demand("create ann own 3");
  await page.getByRole("button", { name: "Sign out" }).click();
  await entryWith("signed out");
  assert.deepEqual(await kept(), {});
  assert.equal((await log()).trim(), "");
  await enter(short);
  await live();
  await until("the conversation", async () => (await page.locator("#log article").count()) === 4);
  await entryWith("has expired");
  const third = await demand("create ann own");
  await enter(third);
  await live();
  await page.route(/\/sessions\/[^/]+\/turns$/, async (route) => { await until("the end", () => field.isVisible()); await route.continue(); }, { times: 1 });
  await say("hello once more");
  assert.equal(await demand(`revoke ${third}`), "done");
  await entryWith("was revoked");
  const fourth = await demand("create ann own");
  await enter(fourth);
  await until("the answer", async () => (await page.locator("#log article").count()) === 6);
  await idle();
  assert.deepEqual(await shown(), await stored(fourth));
  await isNowhere([first, second, metrics, short, third, fourth]);

  // Another person sees nothing of it, in a session of their own.
  const anns = session();
  await page.getByRole("button", { name: "Sign out" }).click();
  await entryWith("signed out");
  await enter(bobs);
  await live();
  assert.notEqual(session(), anns);
  assert.equal(await page.locator("#log article").count(), 0);

  // Header and entry fit on a narrow window.
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 700 });
    for (const name of ["header", "#entry"]) {
      if (name === "#entry") await page.getByRole("button", { name: "Sign out" }).click();
      const wide = await page.evaluate((name) => { const box = document.querySelector(name); return Math.max(box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth - window.innerWidth); }, name);
      assert.equal(wide, 0, `${name} at ${width} pixels`);
    }
    await enter(bobs);
    await live();
  }
  assert.ok(complaints.every((complaint) => /status of 40[134]/.test(complaint)), JSON.stringify(complaints));
  console.log(JSON.stringify({ refused: complaints.length, requests: addresses.length > 20 }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
  process.exit();
}
