/** A view as a custom widget of a CloudWatch dashboard: HTML, CSS and SVG, because CloudWatch strips scripts. */
import { raw } from "hono/html";
import { type PageAnswer, startPages } from "#shared/pages/answer-page.ts";
import { partStyle } from "#shared/pages/style.ts";
import { type Child, type Host, type Html, html, type PagePlace, type Search } from "#shared/pages/view.ts";
import { formatTime } from "#shared/words/age.ts";

/** @param endpoint - ARN of this function, which the console calls again when somebody clicks. */
export function widgetHost(now: Date, endpoint: string): Host {
  return {
    now,
    link: (place, text) => action(html`<button type="button" class="to">${text}</button>`, { place, endpoint }),
    search: (search) => searchFields(search, endpoint),
  };
}

interface Target {
  readonly place: PagePlace;
  readonly endpoint: string;
}

/** A `cwdb-action` applies to the element before it. */
function action(element: Html, { place, endpoint }: Target): Html {
  return html`${element}<cwdb-action action="call" display="widget" endpoint="${endpoint}">${raw(jsonInHtml(place))}</cwdb-action>`;
}

/** The console passes all fields of the widget with each call. */
function searchFields({ place, name, label, value, example }: Search, endpoint: string): Html {
  const button = html`<button type="button">Show</button>`;
  return html`<p class="search"><label>${label} <input name="${name}" value="${value}" placeholder="${example}"></label> ${action(button, { place, endpoint })}</p>`;
}

/** JSON that is the same text whether it is read as text or as HTML. */
function jsonInHtml({ path, query = {} }: PagePlace): string {
  return JSON.stringify({ path, query }).replaceAll(/[^ -~]|[<>&']/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export interface Drawing {
  readonly path: string;
  readonly theme: "light" | "dark";
  readonly host: Host;
}

export function widgetOf(answer: PageAnswer, { path, theme, host }: Drawing): string {
  const links: Child[] = startPages.map(({ path: to, name }) =>
    to === path ? html`<li><b>${name}</b></li>` : html`<li>${host.link({ path: to }, name)}</li>`,
  );
  const at = formatTime(host.now.toISOString(), host.now);
  return html`<style>${raw(partStyle(theme))}</style>
<div class="starling cwdb-no-default-styles"><div class="bar-of-links"><ul>${links}</ul><span class="asof">as of ${at}</span></div>
${answer.main}
</div>`.toString();
}
