// Drives the live page of a running server in Chromium, as a person would, and checks what is
// shown against what the server says. Usage: node page.mjs URL PROFILE_FOLDER
// Ends with 0 and one line of JSON, or with 1 and what was wrong.

import assert from "node:assert/strict";
import { controls, firstPage, open } from "./chromium.mjs";

const [url, profile] = process.argv.slice(2);

const context = await open(profile);
const { page, complaints } = await firstPage(context);
const { live, say, until } = controls(page);
await page.addInitScript(() => {
  document.addEventListener("securitypolicyviolation", (violation) => {
    console.error(`policy: ${violation.violatedDirective} ${violation.blockedURI}`);
  });
});

const answers = page.locator("article.assistant .text");
const last = async () => ((await answers.count()) === 0 ? "" : await answers.last().innerText());
const idle = () => page.waitForFunction(() => document.querySelector("#stop").disabled);
const busy = () => page.waitForFunction(() => !document.querySelector("#stop").disabled);

// What the server has, as the page should show it.
async function stored() {
  const session = new URL(page.url()).hash.slice(1);
  const answer = await page.request.get(`${url}/sessions/${session}/messages?limit=200`);
  const { messages } = await answer.json();
  const words = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
  return messages.filter((message) => message.role !== "tool").map(words);
}
async function shown() {
  return page.locator("#log article").evaluateAll((articles) =>
    articles
      .filter((article) => !article.classList.contains("tool"))
      .map((article) => [...article.querySelectorAll(":scope > .text")].map((text) => text.textContent).join("")),
  );
}

try {
  await page.goto(url);
  await live();

  // An answer grows before one's eyes.
  // The page itself keeps every length it has shown: looking now and then would miss some.
  await page.evaluate(() => {
    window.lengths = [];
    new MutationObserver(() => {
      const length = [...document.querySelectorAll("article.assistant .text")].at(-1)?.textContent.length ?? 0;
      if (length !== window.lengths.at(-1)) window.lengths.push(length);
    }).observe(document.querySelector("#log"), { childList: true, characterData: true, subtree: true });
  });
  await say("hello");
  await until("the answer", async () => (await last()).endsWith("the end."));
  const lengths = await page.evaluate(() => window.lengths);
  const growth = new Set(lengths).size;
  assert.ok(growth >= 4, `the answer streams: ${lengths}`);
  await idle();

  // A long answer is stopped, and the page says what became of it.
  await say("long");
  await busy();
  await until("words", async () => (await last()).length > 20);
  await page.locator("#stop").click();
  await until("the receipt", async () => (await page.locator(".note").allInnerTexts()).some((note) => note.startsWith("Stopped in")));
  await idle();
  assert.ok((await page.locator(".note").allInnerTexts()).includes("(cancelled)"));

  // The page is loaded anew in the middle of an answer, and nothing is lost.
  await say("hello again");
  await busy();
  await until("words", async () => (await last()).length > 5);
  await page.reload();
  await live();
  await until("the end", async () => (await last()).endsWith("the end."));
  await idle();
  assert.deepEqual(await shown(), await stored());

  // A turn that is over before the page hears that it was accepted leaves nothing to stop.
  const turns = /\/turns$/;
  await page.route(turns, async (route) => {
    const response = await route.fetch();
    await until("the end of the turn", async () => (await page.locator("#events b").allInnerTexts()).at(-1) === "turn.completed");
    await route.fulfill({ response });
  });
  await say("echo quick");
  await until("the answer", async () => (await last()) === "echo quick");
  await page.waitForFunction(() => document.querySelector("#input").value === "");
  await idle();
  await page.unroute(turns);

  // What a model says is text, whatever it looks like.
  const markup = "<img src=x onerror='window.hurt = 1'><script>window.hurt = 2</script>";
  await say(`echo ${markup}`);
  await until("the echo", async () => (await last()).includes("</script>"));
  await idle();
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.equal(await page.locator("#log img, #log script").count(), 0);
  assert.deepEqual(await shown(), await stored());

  assert.deepEqual(complaints, []);
  console.log(JSON.stringify({ messages: (await shown()).length, growth }));
} catch (error) {
  console.error(error.stack ?? error);
  console.error(`complaints: ${JSON.stringify(complaints)}`);
  process.exitCode = 1;
} finally {
  await context.close();
}
