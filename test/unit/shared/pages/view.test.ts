import fc from "fast-check";
import { expect, test } from "vitest";
import { pageHost } from "#shared/pages/html-document.ts";
import { badge, bar, brief, command, fields, html, table } from "#shared/pages/view.ts";

const hostile = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `' onmouseover='alert(1)`,
  `javascript:alert(1)`,
  `</title></style></textarea>`,
  `\u202egnp.exe`,
  `\u0000\u001b[31m`,
  `&lt;b&gt;`,
];

test.each(hostile)("the text %j is escaped in a cell, an attribute and an address", (text) => {
  const host = pageHost(new Date());
  const part = html`${table(text, [text, [text, "number"]], [[text, badge(text)]])}${brief(`${text} ${"x".repeat(300)}`)}${fields([[text, text]])}${host.link({ path: `/clusters/${encodeURIComponent(text)}`, query: { stage: text } }, text)}${bar([{ tone: "good", name: text, count: 3 }])}`;
  const made = part.toString();
  const known =
    /<\/?(?:div|table|caption|thead|tbody|tr|th|td|span|dl|dt|dd|a|svg|title|rect)(?: [a-z-]+="[^"<>]*")*>/gi;
  expect(made.replaceAll(known, "")).not.toMatch(/[<>"]/);
  for (const obeyed of ["\u0000", "\u001b", "\u202e"]) expect(made).not.toContain(obeyed);
});

test("each cell names its column, because a narrow screen has no row of column names", () => {
  const made = table("Groups", ["State", ["Ready", "number"]], [["Failed", "1/2"]]).toString();
  expect(made).toContain('<td role="cell" data-name="State" class="word">Failed</td>');
  expect(made).toContain('<td role="cell" data-name="Ready" class="number">1/2</td>');
});

test("a command breaks between its words, and never within a flag", () => {
  expect(command("starling plan web -n shop --cluster=a-b").toString()).toBe(
    '<code>starling plan web <span class="flag">-n</span> shop <span class="flag">--cluster=a-b</span></code>',
  );
  expect(command("-f <FILE>").toString()).toBe('<code><span class="flag">-f</span> &lt;FILE&gt;</code>');
});

test("an object cannot claim to be escaped", () => {
  const claims = { isEscaped: true, toString: () => "<b>" } as unknown as string;
  expect(() => html`${claims}`).toThrow("text");
});

test("the parts of a bar fill it, and each part with a count is visible", () => {
  const counts = fc.array(fc.nat(10_000), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(counts, (many) => {
      const made = bar(many.map((count, at) => ({ tone: "good" as const, name: `n${at}`, count }))).toString();
      const widths = [...made.matchAll(/ width="([\d.]+)"/g)].map(([, width]) => Number(width));
      expect(widths).toHaveLength(many.filter((count) => count > 0).length);
      if (widths.length === 0) return;
      expect(Math.abs(widths.reduce((sum, width) => sum + width, 0) - 100)).toBeLessThan(0.1);
      expect(Math.min(...widths)).toBeGreaterThan(0.5);
    }),
  );
});
