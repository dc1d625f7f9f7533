/** Renders a view as a complete HTML page. */
import { raw } from "hono/html";
import { queryString } from "#shared/base/percent-encoding.ts";
import { type PageAnswer, startPages } from "#shared/pages/answer-page.ts";
import { type Child, type Host, type Html, html, type PagePlace, type Search } from "#shared/pages/view.ts";

/** Links lead to pages. @param base - the prefix of their paths. */
export function pageHost(now: Date, base = ""): Host {
  return {
    now,
    link: (place, text) => html`<a href="${base}${addressOf(place)}">${text}</a>`,
    search: (search) => searchForm(search, base),
  };
}

function searchForm({ place, name, label, value, example }: Search, base: string): Html {
  return html`<form method="get" role="search" action="${base}${place.path}"><label>${label} <input id="search" name="${name}" value="${value}" placeholder="${example}"></label> <button>Show</button></form>`;
}

function addressOf({ path, query = {} }: PagePlace): string {
  const text = queryString(query);
  return text === "" ? path : `${path}?${text}`;
}

/** @param where - what the pages show: the name of the context, or the machine. */
export function documentOf(
  answer: PageAnswer,
  {
    path,
    base,
    where,
    now,
  }: { readonly path: string; readonly base: string; readonly where: string; readonly now: Date },
): string {
  const links: Child[] = startPages.map(({ path: to, name, key }) =>
    to === path
      ? html`<li><a href="${base}${to}" data-key="${key}" aria-current="page">${name}</a></li>`
      : html`<li><a href="${base}${to}" data-key="${key}">${name}</a></li>`,
  );
  const page: Html = html`${raw("<!doctype html>")}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${answer.title} - Starling</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/style.css">
<script src="${base}/live.js" defer></script>
</head>
<body class="starling">
<header><b>Starling</b><span>${where}</span><nav aria-label="Pages"><ul>${links}</ul></nav><span id="asof" class="asof">as of ${now.toISOString().slice(11, 19)}Z</span></header>
<main id="main" data-still="${answer.isStill === true ? "yes" : "no"}">${answer.main}</main>
</body>
</html>
`;
  return page.toString();
}
