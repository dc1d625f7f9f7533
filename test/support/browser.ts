/** A real browser, where CHROMIUM or PATH has one, and what it complains of. */
import { accessSync, constants, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function locateChromium(): string | undefined {
  const named = process.env.CHROMIUM;
  const found = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "chromium"));
  return [...(named === undefined ? [] : [named]), ...found].find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Absent: nothing can be looked at, and tests that would are left out. */
export const executablePath = locateChromium();

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** What the browser says from now on of errors, of its own and of answers. */
export function complaintsOf(page: Page): readonly string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  return complaints;
}

interface Findings {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly target: readonly string[] }[];
  }[];
}

/** What axe finds, by rule and place. */
export async function inaccessible(page: Page): Promise<readonly string[]> {
  // Past the page's own policy, as whatever the debugger evaluates.
  await page.evaluate(axeSource);
  const found = (await page.evaluate("axe.run()")) as Findings;
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}

/** What of the page is reached only by moving something sideways, by the label of what has to be moved. */
export async function sideways(page: Page): Promise<readonly string[]> {
  return (await page.evaluate(
    `[...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.getAttribute("aria-label"))`,
  )) as readonly string[];
}

/** By how many pixels the page is wider than the screen: 0 where nothing has to be moved sideways but tables. */
export async function overflow(page: Page): Promise<number> {
  return Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"));
}
