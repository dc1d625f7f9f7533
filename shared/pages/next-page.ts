import { type Host, type Html, html, type PagePlace } from "#shared/pages/view.ts";

/** The link to the next part of a list. The browser leads back. */
export function nextPage(place: PagePlace, next: string | undefined, host: Host): Html {
  if (next === undefined) return html``;
  return html`<p class="more">${host.link({ path: place.path, query: { ...place.query, continue: next } }, "More")}</p>`;
}
