// Drives the live page of a running server: it follows the end of the conversation unless a person
// scrolls away, and when its connection is cut it comes back by itself and misses nothing.
// Usage: node follow.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";
import { relayTo } from "./relay.mjs";

const [url, profile] = process.argv.slice(2);

const relay = await relayTo(url);
const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, idle, say, until } = controls(page);
await page.setViewportSize({ width: 900, height: 600 });
const subscribes = []; // of each connection
page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
  const it = JSON.parse(payload);
  if (it.type === "subscribe") subscribes.push(it);
}));

const badge = () => page.locator("#badge").innerText();
const last = () => page.locator("article.assistant .text").last().innerText();
const below = () => page.evaluate(() => { const box = document.querySelector("#log"); return box.scrollHeight - box.scrollTop - box.clientHeight; });
const top = () => page.evaluate(() => document.querySelector("#log").scrollTop);
const jump = page.locator("#jump");
async function scrollUp() {
  await page.locator("#log").hover();
  await page.mouse.wheel(0, -400);
  await until("a place above the end", async () => (await below()) > 100);
}
// On a narrow window the header and the hint of the input are whole.
async function fits() {
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 700 });
    // The notice stays for a while: the connection is closed.
    await until("the loss in a narrow window", async () => /^disconnected, retry in \d+ s$/.test(await badge()));
    const wide = await page.evaluate(() => {
      const header = document.querySelector("header"), button = document.querySelector("#fresh").getBoundingClientRect();
      const input = document.querySelector("#input"), { font, paddingLeft, paddingRight } = getComputedStyle(input);
      const pen = document.createElement("canvas").getContext("2d");
      pen.font = font;
      const room = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
      return {
        header: header.scrollWidth - header.clientWidth, page: document.documentElement.scrollWidth - window.innerWidth,
        button: Math.max(0, button.right - window.innerWidth), hint: Math.max(0, pen.measureText(input.placeholder).width - room),
      };
    });
    assert.deepEqual(wide, { header: 0, page: 0, button: 0, hint: 0 }, `${width} pixels wide`);
  }
  await page.setViewportSize({ width: 900, height: 600 });
}

try {
  await page.goto(relay.url);
  await live();

  // Text that grows fires scroll events which no person caused: they do not count.
  await page.evaluate(() => {
    const box = document.querySelector("#log");
    window.noise = new MutationObserver(() => box.dispatchEvent(new Event("scroll")));
    window.noise.observe(box, { childList: true, characterData: true, subtree: true });
  });
  for (let times = 0; times < 2; times += 1) {
    await say("tall");
    await until("the whole answer", async () => (await page.locator("article.assistant").count()) === times + 1 && (await last()).endsWith("the end."));
    await idle();
    await until("the end in view", async () => (await below()) < 5);
  }
  assert.ok((await page.evaluate(() => document.querySelector("#log").scrollHeight)) > 1500, "the answers are taller than the window");
  // A notice takes room from the conversation, and its end stays in view.
  await page.evaluate(() => window.dispatchEvent(new Event("resize")));
  await page.setViewportSize({ width: 700, height: 420 });
  await until("the end in a smaller window", async () => (await below()) < 5);
  await page.setViewportSize({ width: 900, height: 600 });
  await until("the end in the window", async () => (await below()) < 5);
  assert.equal(await jump.isHidden(), true);

  // A person who scrolls up stays there while others talk, and comes back at will.
  await scrollUp();
  await until("the way back", async () => await jump.isVisible());
  const place = await top(), session = new URL(page.url()).hash.slice(1);
  await page.request.post(`${url}/sessions/${session}/turns`, { data: { message: "tall" } });
  await until("the third answer", async () => (await page.locator("article.assistant").count()) === 3 && (await last()).endsWith("the end."));
  assert.equal(await top(), place, "the place is kept");
  await jump.click();
  await until("the end again", async () => (await below()) < 5 && (await jump.isHidden()));
  assert.equal(await page.evaluate(() => document.activeElement.id), "input");
  // Who sends wants to see the answer.
  await idle();
  await scrollUp();
  await say("tall");
  await until("the fourth answer", async () => (await page.locator("article.assistant").count()) === 4 && (await last()).endsWith("the end."));
  await until("the end after sending", async () => (await below()) < 5);
  await idle();

  // From here on the browser's own events are enough: one more for every piece of a long answer would
  // lay out the page more often than a busy machine can.
  await page.evaluate(() => window.noise.disconnect());

  // Small movements by hand leave the end of an answer that streams, by wheel, finger and key, and
  // the place is kept although every line moves the end.
  const box = await page.locator("#log").boundingBox();
  const middle = { x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2) };
  const devtools = await context.newCDPSession(page);
  const nextFrame = () => page.evaluate(() => new Promise(requestAnimationFrame));
  const hands = {
    wheel: async () => {
      await page.mouse.move(middle.x, middle.y);
      for (let step = 0; step < 30; step += 1) {
        await page.mouse.wheel(0, -8);
        await nextFrame();
      }
    },
    touch: async () => {
      const touch = (type, ...touchPoints) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints });
      await touch("touchStart", middle);
      for (let y = middle.y; y < middle.y + 160; y += 5) {
        await touch("touchMove", { x: middle.x, y });
        await nextFrame();
      }
      await touch("touchEnd");
    },
    key: async () => {
      await page.locator("#log").focus();
      await page.keyboard.press("ArrowUp");
    },
  };
  for (const [name, move] of Object.entries(hands)) {
    const answers = await page.locator("article.assistant").count();
    await say("steady");
    await until("lines", async () => (await page.locator("article.assistant").count()) > answers && (await last()).length > 700);
    await until("the end while it streams", async () => (await below()) < 5);
    await move();
    await until(`the end left by ${name}`, async () => await jump.isVisible());
    const length = (await last()).length, place = await top();
    await until("more lines", async () => (await last()).length > length + 400);
    // A swipe may have run on.
    assert.ok((await top()) <= place, `${name}: pulled back from ${place} to ${await top()}`);
    assert.ok((await below()) > 300, `${name}: ${await below()} above the end`);
    // On the way down the end catches again.
    await page.mouse.move(middle.x, middle.y);
    await until("the end by wheel", async () => { await page.mouse.wheel(0, 4000); return await jump.isHidden(); });
    await until("the end that moves on", async () => (await below()) < 5);
    // By the script: a button below lines that stream is never at rest.
    await page.evaluate(() => document.querySelector("#stop").click());
    await idle();
  }

  // The connection is cut in the middle of an answer, and stays so for a while.
  await say("long");
  await until("words", async () => (await page.locator("article.assistant").count()) === 8 && (await last()).length > 20);
  const cuts = 3;
  for (let times = 0; times < cuts; times += 1) {
    relay.close();
    await until("the loss", async () => (await badge()).startsWith("disconnected"));
    if (times === 0) await fits();
    const before = (await last()).length;
    relay.open();
    await live();
    await until("more words", async () => (await last()).length > before);
  }
  await until("the whole answer", async () => (await last()).trimEnd().endsWith("THE END."));
  await idle();
  assert.equal(subscribes.length, cuts + 1);
  assert.deepEqual(subscribes.map((it) => it.snapshot), [true, ...Array(cuts).fill(false)]);
  assert.ok(subscribes.slice(1).every((it) => /^evt_/.test(it.since)), "by its cursor");
  const { messages } = await (await page.request.get(`${url}/sessions/${session}/messages?limit=200`)).json();
  const stored = messages.filter((message) => message.role !== "tool").map((message) => message.content.map((block) => block.text ?? "").join(""));
  const shown = await page.locator("#log article").evaluateAll((all) => all.map((article) => [...article.querySelectorAll(":scope > .text")].map((text) => text.textContent).join("")));
  assert.deepEqual(shown, stored, "nothing twice, nothing missing");
  assert.ok(complaints.every((complaint) => /WebSocket|ERR_|Failed to load/.test(complaint)), JSON.stringify(complaints));
  console.log(JSON.stringify({ messages: shown.length, cuts }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
  relay.end();
}
