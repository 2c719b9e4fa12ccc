// Drives the live page of a server that does not replay from every cursor: a page that was away for
// too long takes a snapshot on the same connection, and shows what the server has.
// Usage: node behind.mjs URL PROFILE_FOLDER CODE, the refusal to expect.
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";
import { relayTo } from "./relay.mjs";

const [url, profile, code] = process.argv.slice(2);

const relay = await relayTo(url);
const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, log, say, until } = controls(page);
let frames = []; // of the last connection
page.on("websocket", (socket) => {
  frames = [];
  for (const way of ["framesent", "framereceived"]) socket.on(way, ({ payload }) => frames.push(JSON.parse(payload)));
});

try {
  await page.goto(relay.url);
  await live();
  await say("echo one");
  await until("the answer", async () => (await page.locator("article.assistant").count()) === 1);
  await idle();
  const session = new URL(page.url()).hash.slice(1), cursor = frames.findLast((it) => it.type === "event").event.id;

  // The page is away while others talk, until the server does not replay from its cursor.
  relay.close();
  await until("the loss", async () => (await page.locator("#badge").innerText()).startsWith("disconnected"));
  const refused = async () => {
    const answer = await page.request.get(`${url}/sessions/${session}/events?limit=1000&since=${cursor}`);
    return code === "cursor_expired" ? answer.status() === 410 : (await answer.json()).events.length > 20;
  };
  for (let others = 2; others < 7; others += 1) {
    const data = { message: `echo ${others}` };
    await until("room for a turn", async () => (await page.request.post(`${url}/sessions/${session}/turns`, { data })).status() === 202);
  }
  await until("a cursor that is too far behind", refused);
  const newest = async () => (await (await page.request.get(`${url}/sessions/${session}/turns?limit=1`)).json()).turns[0].state;
  await until("the end of the turns", async () => (await newest()) === "completed");
  relay.open();
  await live();
  const messages = async () => (await (await page.request.get(`${url}/sessions/${session}/messages?limit=200`)).json()).messages;
  const stored = (await messages()).map((message) => message.content.map((block) => block.text).join(""));
  await until("all messages", async () => (await page.locator("#log article").count()) === stored.length);
  assert.deepEqual(await page.locator("#log article").allInnerTexts(), stored);
  const asked = frames.filter((it) => it.type.startsWith("subscribe"));
  assert.deepEqual(asked.map((it) => it.code ?? it.type), ["subscribe", code, "subscribe", "subscribe_ack"]);
  assert.deepEqual([asked[0].since, asked[0].snapshot], [cursor, false]);
  assert.deepEqual([asked[2].since, asked[2].snapshot], [null, true]);

  // Live events follow the snapshot.
  await say("echo and now");
  await until("the last answer", async () => (await log()).endsWith("echo and now"));
  assert.ok(complaints.every((complaint) => /WebSocket|ERR_|Failed to load/.test(complaint)), JSON.stringify(complaints));
  console.log(JSON.stringify({ code }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
  relay.end();
}
