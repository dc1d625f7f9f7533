/**
 * Shows pages and the widget of the dashboard over fleets of 10 to 10,000 clusters in a real browser: light and dark, from a telephone
 * to a wall screen. Without a browser the tests are skipped. STARLING_SCREENSHOTS names a folder for pictures. The time of the first
 * view is printed; no test asserts it, because it depends on the machine.
 */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWith } from "#functions/api/http/read-with.ts";
import { dashboardHandler } from "#functions/dashboard/dashboard-handler.ts";
import { servePages } from "#shared/pages/serve-pages.ts";
import {
  complaintsOf,
  executablePath,
  inaccessible,
  launchBrowser,
  overflow,
  sideways,
} from "#test/support/browser.ts";
import { serveCloudWatch } from "#test/support/cloudwatch-page.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { shownFleet } from "#test/support/shown-fleet.ts";

const folder = process.env.STARLING_SCREENSHOTS;
const sizes = [10, 100, 1000, 10_000] as const;
const widths = [375, 768, 1280, 2560] as const;
const group = "/syncgroups/platform/ingress";
const cluster = "prod-euw1-0000";
const places = [
  ...["/", "/versions", "/clusters", "/clusters?labelSelector=ring%3Dcanary", "/sources", "/timeline", "/events"],
  ...["/receivers", "/receivers/platform/ci"],
  ...["/sources/platform/app", "/syncgroups/payments/app"],
  ...[group, `${group}/clusters`, `${group}/clusters?state=Failed`, `${group}/history`, `${group}/events`],
  ...[`/clusters/${cluster}`, `/clusters/${cluster}/objects`, `/clusters/${cluster}/syncs/platform/ingress.t0`],
];

async function shoot(page: Page, name: string): Promise<void> {
  const file = name.replaceAll(/[^a-z0-9]+/gi, "-");
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${file}.png`), fullPage: true });
}

/** The time from the address to the first paint, as the browser measures it. */
async function firstView(page: Page): Promise<string> {
  const drawn = (await page.evaluate(
    `new Promise((told) => new PerformanceObserver((seen) => told(seen.getEntries().at(-1).startTime)).observe({ type: "paint", buffered: true }))`,
  )) as number;
  const answered = Number(await page.evaluate(`performance.getEntriesByType("navigation")[0].responseEnd`));
  return `answered in ${Math.round(answered)} ms, drawn in ${Math.round(drawn)} ms`;
}

describe.skipIf(executablePath === undefined)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  describe.each(sizes)("%i clusters", { timeout: 300_000 }, (size) => {
    const now = new Date();
    const fleet = shownFleet(size, now);

    test("pages fit every width, light and dark, without errors of the browser and without findings of accessibility", async () => {
      const ports = await fleet;
      const faults: string[] = [];
      const pages = await servePages({
        ask: readWith(ports),
        clock: ports.clock,
        where: "context prod",
        port: 0,
        onFault: (line) => faults.push(line),
      });
      const page = await browser.newPage();
      const complaints = complaintsOf(page);
      const findings: string[] = [];
      try {
        for (const [at, place] of places.entries()) {
          // Each page is shown light at two sizes, and dark at two.
          const colorScheme = (at + sizes.indexOf(size)) % 2 === 0 ? "light" : "dark";
          await page.emulateMedia({ colorScheme });
          await page.goto(`${pages.url}${place.slice(1)}`);
          if (folder !== undefined && (place === "/" || place === group))
            process.stdout.write(`${size} clusters, ${place}: ${await firstView(page)}\n`);
          for (const width of widths) {
            await page.setViewportSize({ width, height: 900 });
            const over = await overflow(page);
            if (over !== 0) findings.push(`${place} is wider than ${width} by ${over}`);
            if (width === 375) findings.push(...(await sideways(page)).map((what) => `${place}: ${what} is cut`));
            await shoot(page, `page-${size}-${width}-${colorScheme}${place === "/" ? "/fleet" : place}`);
          }
          findings.push(...(await inaccessible(page)).map((finding) => `${place} ${colorScheme}: ${finding}`));
          if (place !== group) continue;
          // The page reads only a part of the clusters. The counts of the stages give the total.
          const cut = await page.getByText(/^This shows \d+ of /).allTextContents();
          if (size === 10_000 && !cut.join().includes(" of 720 clusters; see all clusters."))
            findings.push(`${place}: ${cut.join()}`);
          // Printed pages are white, even with a dark screen.
          await page.emulateMedia({ colorScheme: "dark", media: "print" });
          findings.push(...(await inaccessible(page)).map((finding) => `${place} on paper: ${finding}`));
          await page.emulateMedia({ media: null });
        }
        expect({ findings, complaints, faults }).toEqual({ findings: [], complaints: [], faults: [] });
      } finally {
        await page.close();
        await pages.close();
      }
    });

    test.each(["light", "dark"] as const)("the widget leads from the fleet to a Sync, %s", async (theme) => {
      const ports = await fleet;
      const console_ = await serveCloudWatch(dashboardHandler({ ...ports, log: silentLog }));
      const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
      const complaints = complaintsOf(page);
      const findings: string[] = [];
      const checkWidget = async (what: string) => {
        findings.push(...(await inaccessible(page)).map((finding) => `${what}: ${finding}`));
        if ((await overflow(page)) !== 0) findings.push(`${what} is wider than the dashboard`);
        await shoot(page, `widget-${what}-${size}-${theme}`);
      };
      try {
        await page.goto(console_.url(theme));
        await page.getByRole("heading", { name: "Needs attention" }).waitFor();
        await checkWidget("fleet");
        await page.getByRole("button", { name: "platform/ingress" }).first().click();
        await page.getByRole("heading", { name: "Stages" }).waitFor();
        await checkWidget("group");
        await page
          .getByRole("row", { name: /^1 canary/ })
          .getByRole("button")
          .click();
        await page.getByRole("button", { name: "ingress.t0" }).first().click();
        await page.getByRole("heading", { name: "Conditions" }).waitFor();
        await checkWidget("sync");
        expect({ findings, complaints }).toEqual({ findings: [], complaints: [] });
      } finally {
        await page.close();
        await console_.close();
      }
    });
  });
});
