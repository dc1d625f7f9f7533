/**
 * Shows the pages in a real browser while a fleet rolls out. The tests are skipped when neither CHROMIUM nor PATH has a
 * browser.
 */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveMachinePages } from "#local/serve/machine-pages.ts";
import {
  complaintsOf,
  executablePath,
  inaccessible,
  launchBrowser,
  overflow,
  sideways,
} from "#test/support/browser.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { webWorldOn } from "#test/support/web-world.ts";

const withWebWorld = webWorldOn(embeddedFleet);
const files = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });

describe.skipIf(executablePath === undefined)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  interface Opened {
    readonly page: Page;
    readonly origin: string;
    /** The errors that the browser reported. */
    readonly complaints: readonly string[];
  }

  async function withPages(world: World, use: (opened: Opened) => Promise<void>): Promise<void> {
    const server = await serveMachinePages(world.machine.api);
    let context: BrowserContext | undefined;
    try {
      context = await browser.newContext();
      const page = await context.newPage();
      const complaints = complaintsOf(page);
      await page.goto(server.url);
      await use({ page, origin: server.url.replace(/\/$/, ""), complaints });
      expect(complaints).toEqual([]);
    } finally {
      await context?.close();
      await server.close();
    }
  }

  test("every page fits every width, light and dark, without errors or findings of accessibility, and shows a rollout's progress", () =>
    withWebWorld({ rings: { canary: 2, broad: 4 }, files: files("red") }, async (world, commit) => {
      await world.untilInSync("web", commit);
      const [name = ""] = (await world.targets("web")).map(({ cluster }) => cluster);
      await withPages(world, async ({ page, origin }) => {
        const places = [
          "/",
          "/versions",
          "/clusters",
          "/sources",
          `/syncgroups/${namespace}/web`,
          `/syncgroups/${namespace}/web/clusters`,
          `/clusters/${name}`,
          `/clusters/${name}/syncs/${namespace}/web.app`,
        ];
        const findings: string[] = [];
        // One page of each kind is shown light, and one dark.
        for (const place of places) {
          await page.goto(`${origin}${place}`);
          const colorScheme = places.indexOf(place) % 2 === 0 ? "light" : "dark";
          await page.emulateMedia({ colorScheme });
          findings.push(...(await inaccessible(page)).map((finding) => `${place} ${colorScheme}: ${finding}`));
          for (const width of [375, 1280, 2560]) {
            await page.setViewportSize({ width, height: 900 });
            const over = await overflow(page);
            if (over !== 0) findings.push(`${place} is wider than ${width} by ${over}`);
            if (width === 375) findings.push(...(await sideways(page)).map((what) => `${place}: ${what} is cut`));
          }
        }
        expect(findings).toEqual([]);

        await page.goto(`${origin}/`);
        await page
          .getByRole("link", { name: `${namespace}/web` })
          .first()
          .focus();
        await world.push("app", { "deploy/settings.yaml": "kind: [" });
        await world.waitFor("the halt", async () => (await world.group("web")).status.state === "Halted");
        await page.getByText("Halted").first().waitFor();
        // The page was not loaded again, and the focus is still on the link.
        expect(await page.evaluate("document.activeElement.textContent")).toBe(`${namespace}/web`);
        await page
          .getByRole("link", { name: `${namespace}/web` })
          .first()
          .click();
        await page.getByRole("heading", { name: "Problems" }).waitFor();
        expect(await page.getByText("halted", { exact: true }).count()).toBe(1);
        const broad = page.getByRole("row", { name: /^2 broad 4 1 / });
        expect(await broad.count()).toBe(1);
        expect(await inaccessible(page)).toEqual([]);

        await page.keyboard.press("g");
        await page.keyboard.press("c");
        await page.waitForURL(`${origin}/clusters`);
        await page.keyboard.press("/");
        await page.keyboard.type("ring=canary");
        await page.keyboard.press("Enter");
        await page.waitForURL(/labelSelector/);
        expect(await page.locator("tbody tr").count()).toBe(2);
      });
    }));
});
