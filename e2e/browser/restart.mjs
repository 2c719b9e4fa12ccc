// Drives the live page of a server that is killed in the middle of an answer and started again: the
// page comes back by itself. Prints `streaming` when the server is to be killed.
// Usage: node restart.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, log, say, until } = controls(page);
const last = () => page.locator("article.assistant .text").last().innerText();

try {
  await page.goto(url);
  await live();
  await say("long");
  // Two seconds of words at least: a part of them is stored, which takes a quarter of a second.
  await until("words", async () => (await page.locator("article.assistant").count()) === 1 && (await last()).length > 240);
  console.log("streaming");
  await until("the loss", async () => (await page.locator("#badge").innerText()).startsWith("disconnected"));
  await live();
  await until("what happened", async () => (await log()).includes("The turn failed. The server was restarted in the middle of it."));
  await idle();
  // The same session goes on.
  await say("echo and now");
  await until("an answer", async () => (await log()).includes("echo and now") && (await last()) === "echo and now");
  await idle();
  const session = new URL(page.url()).hash.slice(1);
  const { messages } = await (await page.request.get(`${url}/sessions/${session}/messages?limit=200`)).json();
  assert.equal(messages.length, await page.locator("#log article").count());
  assert.ok(complaints.every((complaint) => /WebSocket|ERR_|Failed to load/.test(complaint)), JSON.stringify(complaints));
  console.log(JSON.stringify({ messages: messages.length }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
}
