/** What every view is made of: HTML that strangers' words cannot get out of, and links as the host draws them. */
import { html as markup } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import { plainText } from "#shared/base/plain-text.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { shorten } from "#shared/words/shorten.ts";
import { isGood, needsSomebody } from "#shared/words/state-words.ts";

export type Html = HtmlEscapedString;
export type Child = Html | string | number | undefined | readonly Child[];

/** A part of a page: texts are escaped, wherever they stand; what controls a terminal or turns the line around is shown. */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Html {
  return markup(strings, ...children.map(plain)) as Html;
}

/** What somebody else's JSON says of itself does not make it a part of a page: those are strings as `html` gives them. */
function plain(child: Child): unknown {
  if (Array.isArray(child)) return child.map(plain);
  if (typeof child === "string") return plainText(child);
  if (child === undefined || typeof child === "number" || child instanceof String) return child;
  throw new Error(`expected a text, a number or a part of a page, and got ${typeof child}`);
}

/** Where a link leads, below the root of the pages. */
export interface PagePlace {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** A word to look for, which is part of a place's query then. */
export interface Search {
  readonly place: PagePlace;
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly example: string;
}

/** Draws the views: a page of its own, or a widget of a dashboard. */
export interface Host {
  readonly now: Date;
  link(place: PagePlace, text: Child): Html;
  search(search: Search): Html;
}

export interface View {
  readonly title: string;
  readonly main: Html;
  /** It is not asked for again by itself: it takes much to make, and says nothing new. */
  readonly isStill?: true;
}

/** A word of state, by colour and shape: neither says it alone. */
export function badge(word: string): Html {
  return html`<span class="state ${toneOf(word)}">${word}</span>`;
}

function toneOf(word: string): "good" | "bad" | "busy" {
  return needsSomebody(word) ? "bad" : isGood(word) ? "good" : "busy";
}

/** `3m`, with the moment itself for who points at it. */
export function age(since: string | undefined, { now }: Host): Html {
  if (since === undefined) return html`<span class="none">-</span>`;
  return html`<time datetime="${since}" title="${formatTime(since, now)}">${formatAge(since, now)}</time>`;
}

/** To a page of somebody else's, of an address that is ours to have made: nothing but https is a link. */
export function outside(address: string, text: string): Html {
  if (!address.startsWith("https://")) return html`${text}`;
  return html`<a href="${address}" target="_blank" rel="noreferrer noopener">${text}</a>`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** To be copied; a line ends between its words, and not within a flag. */
export function command(text: string): Html {
  const words = text.split(" ").map((word) => (word.startsWith("-") ? html`<span class="flag">${word}</span>` : word));
  return html`<code>${words.flatMap((word, at) => (at === 0 ? [word] : [" ", word]))}</code>`;
}

/** The whole text is there for who points at it. */
export function brief(text: string, most = 160): Html {
  const short = shorten(text, most);
  return short === text ? html`${text}` : html`<span title="${text}">${short}</span>`;
}

/** Its name; numbers stand to the right, and texts take more than one line. */
export type Column = string | readonly [name: string, is: "number" | "text"];

/** A table whose rows are folded where the screen is narrow: each cell says which column it is of then. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Child[])[]): Html {
  if (rows.length === 0) return html``;
  const cell = (child: Child, at: number) =>
    html`<td role="cell" data-name="${nameOf(columns[at])}" class="${kindOf(columns[at])}">${child}</td>`;
  const head = (column: Column) =>
    html`<th role="columnheader" scope="col" class="${kindOf(column)}">${nameOf(column)}</th>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table role="table">
<caption>${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(head)}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => html`<tr role="row">${row.map(cell)}</tr>`)}</tbody>
</table></div>`;
}

function nameOf(column: Column = ""): string {
  return typeof column === "string" ? column : column[0];
}

function kindOf(column: Column | undefined): string {
  return column === undefined || typeof column === "string" ? "word" : column[1];
}

/** Names and values, those without a value left out. */
export function fields(pairs: readonly (readonly [name: string, value: Child])[]): Html {
  const reported = pairs.filter(([, value]) => value !== undefined && value !== "");
  return html`<dl>${reported.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export interface Share {
  readonly tone: "good" | "bad" | "busy" | "rest";
  readonly name: string;
  readonly count: number;
}

/** One bar of all clusters, each share as wide as it is many, and at least to be seen. */
export function bar(shares: readonly Share[]): Html {
  const reported = shares.filter((share) => share.count > 0);
  const words = reported.map(({ name, count: many }) => `${count(many)} ${name}`).join(", ");
  const all = reported.reduce((sum, share) => sum + share.count, 0);
  const least = all / 100;
  const wide = reported.map((share) => Math.max(share.count, least));
  const sum = wide.reduce((total, each) => total + each, 0);
  let x = 0;
  const parts = reported.map(({ tone }, at) => {
    const width = ((wide[at] ?? 0) / sum) * 100;
    const part = html`<rect class="${tone}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="10"></rect>`;
    x += width;
    return part;
  });
  return html`<svg class="bar" role="img" aria-label="${words === "" ? "no clusters" : words}" viewBox="0 0 100 10" preserveAspectRatio="none"><title>${words === "" ? "no clusters" : words}</title>${parts}</svg>`;
}

/** What stands where nothing does: a view is never empty without a word. */
export function nothing(words: string): Html {
  return html`<p class="none">${words}</p>`;
}
