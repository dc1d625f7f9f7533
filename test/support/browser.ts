/** Starts a real browser, if CHROMIUM or the PATH has one, and reads its complaints. */
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

/** Undefined without a browser. Tests that need one are then skipped. */
export const executablePath = locateChromium();

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** Collects the errors that the browser reports from now on, about pages and about answers. */
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

/** The findings of axe, by rule and place. */
export async function inaccessible(page: Page): Promise<readonly string[]> {
  // The page's own policy does not apply to code from the debugger.
  await page.evaluate(axeSource);
  const found = (await page.evaluate("axe.run()")) as Findings;
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}

/** The labels of the elements that a reader must scroll sideways to see all of the page. */
export async function sideways(page: Page): Promise<readonly string[]> {
  return (await page.evaluate(
    `[...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.getAttribute("aria-label"))`,
  )) as readonly string[];
}

/** The number of pixels by which the page is wider than the screen. It is 0 if only tables scroll sideways. */
export async function overflow(page: Page): Promise<number> {
  return Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"));
}
