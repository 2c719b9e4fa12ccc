// Reads event streams as a page or a Node.js program does: with Chromium's EventSource or with the
// `eventsource` package. Usage: node streams.mjs chromium PROFILE_FOLDER | node streams.mjs package
//
// A line of standard input asks for one stream: {"base": "http://…", "path": "/chat/…/stream"}.
// A line of standard output tells what came: {"events": [[id, event, data], …]}. Nothing is ever
// closed from this side: a stream is over when the source itself gives up, as it must on 204.

import { createInterface } from "node:readline";
import { EventSource as PackageEventSource } from "eventsource";
import { open } from "./chromium.mjs";

const [kind, profile] = process.argv.slice(2);

// Has no names from outside but its arguments, because Chromium gets it as text.
function read(EventSource, url) {
  const names = [
    ...["message", "response_id", "episode", "thinking", "reasoning", "text", "tool_call"],
    ...["tool_completed", "usage", "completed", "cancelled", "error", "forged"],
  ];
  const source = new EventSource(url);
  const events = [];
  return new Promise((resolve) => {
    setTimeout(() => resolve({ events, error: `not over (${source.readyState})` }), 60_000);
    for (const name of names) {
      source.addEventListener(name, (event) => {
        if (event.data !== undefined) events.push([event.lastEventId, event.type, event.data]);
        else if (source.readyState === EventSource.CLOSED) resolve({ events });
      });
    }
  });
}

async function inChromium() {
  const context = await open(profile);
  // Pages stay open to the end, so that a source that would come back can.
  return {
    async read({ base, path }) {
      const page = await context.newPage();
      await page.goto(`${base}/page`);
      return page.evaluate(`(${read})(EventSource, ${JSON.stringify(path)})`);
    },
    close: () => context.close(),
  };
}

const inNode = {
  read: ({ base, path }) => read(PackageEventSource, `${base}${path}`),
  close: () => {},
};

const reader = kind === "chromium" ? await inChromium() : inNode;
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
answer({ ready: true });
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  answer(await reader.read(JSON.parse(line)));
}
await reader.close();
process.exit(0);
