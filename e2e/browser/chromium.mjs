// Chromium as a person starts it, with a profile of its own, and without a word to anyone outside.

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
