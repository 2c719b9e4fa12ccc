// Chromium as a person starts it, with a profile of its own, and without a word to anyone outside.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

/** Opens it with the profile in this folder. */
export function open(profile) {
  return chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** The first page, and what it complains of. */
export async function firstPage(context) {
  context.setDefaultTimeout(20_000);
  const complaints = [];
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  return { page, complaints };
}

// What every program does with the page and waits for.
export function controls(page) {
  const log = () => page.locator("#log").innerText();
  return {
    live: () => page.waitForFunction(() => document.querySelector("#badge").textContent === "live", null, { timeout: 60_000 }),
    idle: () => page.waitForFunction(() => document.querySelector("#stop").disabled && document.querySelector("#input").value === ""),
    log,
    say: async (text) => {
      await page.locator("#input").fill(text);
      await page.locator("#input").press("Enter");
    },
    until: async (what, test) => {
      const begun = Date.now();
      while (!(await test())) {
        assert.ok(Date.now() - begun < 60_000, `${what} never came; shown: ${await log()}`);
        await page.waitForTimeout(20);
      }
    },
  };
}
