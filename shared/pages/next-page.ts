import { type Host, type Html, html, type PagePlace } from "#shared/pages/view.ts";

/** The way on in a list that is longer than its page; the way back is the browser's. */
export function nextPage(place: PagePlace, next: string | undefined, host: Host): Html {
  if (next === undefined) return html``;
  return html`<p class="more">${host.link({ path: place.path, query: { ...place.query, continue: next } }, "More")}</p>`;
}
