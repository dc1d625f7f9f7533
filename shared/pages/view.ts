/** The parts of all views: HTML with escaped texts, and links that the host renders. */
import { html as markup } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import { plainText } from "#shared/base/plain-text.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { shorten } from "#shared/words/shorten.ts";
import { isGood, needsSomebody } from "#shared/words/state-words.ts";

export type Html = HtmlEscapedString;
export type Child = Html | string | number | undefined | readonly Child[];

/**
 * A part of a page. Texts are escaped everywhere. Characters that control a terminal or the text direction become
 * visible.
 */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Html {
  return markup(strings, ...children.map(plain)) as Html;
}

/** Parsed JSON cannot pretend to be a part of a page: only `html` makes such strings. */
function plain(child: Child): unknown {
  if (Array.isArray(child)) return child.map(plain);
  if (typeof child === "string") return plainText(child);
  if (child === undefined || typeof child === "number" || child instanceof String) return child;
  throw new Error(`expected a text, a number or a part of a page, and got ${typeof child}`);
}

/** The target of a link, below the root of the pages. */
export interface PagePlace {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** A search, whose text becomes a part of the place's query. */
export interface Search {
  readonly place: PagePlace;
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly example: string;
}

/** Renders links and searches, for a page of its own or for a dashboard's widget. */
export interface Host {
  readonly now: Date;
  link(place: PagePlace, text: Child): Html;
  search(search: Search): Html;
}

export interface View {
  readonly title: string;
  readonly main: Html;
  /** The view does not refresh by itself, because it is expensive and seldom changes. */
  readonly isStill?: true;
}

/** A state word with a colour and a shape, so that neither alone carries the meaning. */
export function badge(word: string): Html {
  return html`<span class="state ${toneOf(word)}">${word}</span>`;
}

function toneOf(word: string): "good" | "bad" | "busy" {
  return needsSomebody(word) ? "bad" : isGood(word) ? "good" : "busy";
}

/** An age such as `3m`, with the exact time as a tooltip. */
export function age(since: string | undefined, { now }: Host): Html {
  if (since === undefined) return html`<span class="none">-</span>`;
  return html`<time datetime="${since}" title="${formatTime(since, now)}">${formatAge(since, now)}</time>`;
}

/** A link to another site. Only https addresses become links. */
export function outside(address: string, text: string): Html {
  if (!address.startsWith("https://")) return html`${text}`;
  return html`<a href="${address}" target="_blank" rel="noreferrer noopener">${text}</a>`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** A command for copying. Lines break between its words, and not inside a flag. */
export function command(text: string): Html {
  const words = text.split(" ").map((word) => (word.startsWith("-") ? html`<span class="flag">${word}</span>` : word));
  return html`<code>${words.flatMap((word, at) => (at === 0 ? [word] : [" ", word]))}</code>`;
}

/** The shortened text, with the whole text as a tooltip. */
export function brief(text: string, most = 160): Html {
  const short = shorten(text, most);
  return short === text ? html`${text}` : html`<span title="${text}">${short}</span>`;
}

/** The name of a column. Numbers are aligned to the right, and texts can wrap. */
export type Column = string | readonly [name: string, is: "number" | "text"];

/** A table whose rows are folded on narrow screens. Each cell then shows its column's name. */
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

/** Names and values, without those that have no value. */
export function fields(pairs: readonly (readonly [name: string, value: Child])[]): Html {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== "");
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export interface Share {
  readonly tone: "good" | "bad" | "busy" | "rest";
  readonly name: string;
  readonly count: number;
}

/** One bar of all clusters. Each share has a proportional width, with a visible minimum. */
export function bar(shares: readonly Share[]): Html {
  const visible = shares.filter((share) => share.count > 0);
  const words = visible.map(({ name, count: many }) => `${count(many)} ${name}`).join(", ");
  const all = visible.reduce((sum, share) => sum + share.count, 0);
  const least = all / 100;
  const wide = visible.map((share) => Math.max(share.count, least));
  const sum = wide.reduce((total, each) => total + each, 0);
  let x = 0;
  const parts = visible.map(({ tone }, at) => {
    const width = ((wide[at] ?? 0) / sum) * 100;
    const part = html`<rect class="${tone}" x="${x.toFixed(2)}" y="0" width="${width.toFixed(2)}" height="10"></rect>`;
    x += width;
    return part;
  });
  return html`<svg class="bar" role="img" aria-label="${words === "" ? "no clusters" : words}" viewBox="0 0 100 10" preserveAspectRatio="none"><title>${words === "" ? "no clusters" : words}</title>${parts}</svg>`;
}

/** The text for an empty part, so that a view never has an unexplained gap. */
export function nothing(words: string): Html {
  return html`<p class="none">${words}</p>`;
}
