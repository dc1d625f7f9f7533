/** The style in light and dark, for any screen size and for print. */

const light =
  "--bg:#fff;--fg:#16191f;--soft:#545b64;--line:#d5dbdb;--head:#f2f3f3;--link:#0a58ca;--good:#0f6b2d;--bad:#b01c17;--busy:#704300;--rest:#c6cbd1;--goodbg:#e6f4ea;--badbg:#fce8e6;--busybg:#fef3dc";
const dark =
  "--bg:#0f141a;--fg:#e6e9ec;--soft:#a9b1ba;--line:#3a434c;--head:#1a222b;--link:#7ab8ff;--good:#5fd17e;--bad:#ff8f87;--busy:#f4bf5f;--rest:#47515b;--goodbg:#12301c;--badbg:#3d1512;--busybg:#3a2a08";

const rules = `
.starling{container-type:inline-size;background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.starling *{box-sizing:border-box}
.starling a{color:var(--link)}
.starling a:focus-visible,.starling :focus-visible{outline:2px solid var(--link);outline-offset:2px}
.starling header{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;align-items:baseline;padding:.6rem 1rem;background:var(--head);border-bottom:1px solid var(--line)}
.starling header b{font-size:1.05rem}
.starling nav ul,.starling .bar-of-links ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:0;padding:0}
.starling nav a[aria-current]{font-weight:600;color:var(--fg);text-decoration:none;border-bottom:2px solid currentColor}
.starling .asof{margin-left:auto;color:var(--soft)}
.starling main{padding:.5rem 1rem 3rem;max-width:120rem;margin:0 auto}
.starling h1{font-size:1.4rem;margin:.8rem 0 .6rem;overflow-wrap:anywhere}
.starling h2{font-size:1.05rem;margin:1.4rem 0 .4rem}
.starling .scroll+.scroll{margin-top:.6rem}
.starling .scroll{overflow-x:auto;border:1px solid var(--line);border-radius:6px}
.starling table{border-collapse:collapse;width:100%}
.starling caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.starling th{text-align:left;font-weight:600;background:var(--head);color:var(--soft);font-size:.85em}
.starling th,.starling td{padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
.starling td.text{white-space:normal;min-width:14rem;overflow-wrap:anywhere}
.starling tbody tr:last-child td{border-bottom:0}
.starling tbody tr:hover{background:var(--head)}
.starling .number{text-align:right;font-variant-numeric:tabular-nums}
.starling .state{display:inline-block;padding:0 .5em;border-radius:1em;font-size:.92em;font-weight:600;white-space:nowrap}
.starling h1 .state{font-size:.7em;vertical-align:middle}
.starling .state.good{color:var(--good);background:var(--goodbg)}
.starling .state.bad{color:var(--bad);background:var(--badbg)}
.starling .state.busy{color:var(--busy);background:var(--busybg)}
.starling .state.rest{color:var(--soft);background:var(--head)}
.starling .state.good::before{content:"✓ "}
.starling .state.bad::before{content:"✗ "}
.starling .state.busy::before{content:"… "}
.starling .bar{display:block;width:100%;min-width:7rem;height:10px;border-radius:3px;background:var(--rest)}
.starling td .bar{margin-top:.4em}
.starling rect.good{fill:var(--good)}.starling rect.bad{fill:var(--bad)}.starling rect.busy{fill:var(--busy)}.starling rect.rest{fill:var(--rest)}
.starling .totals ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:.4rem 0 0;padding:0;color:var(--soft)}
.starling .totals li b{color:var(--fg)}
.starling .stages{display:flex;flex-wrap:wrap;gap:0 1rem;list-style:none;margin:0;padding:0}
.starling .commits,.starling .commits ul{margin:0;padding-left:1rem}
.starling .none,.starling small,.starling .on{color:var(--soft)}
.starling .remark{border-left:3px solid var(--busy);padding:.3rem .7rem;background:var(--head);overflow-wrap:anywhere}
.starling dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:.2rem 1.5rem;margin:0}
.starling dl div{display:flex;gap:.6rem}
.starling dt{color:var(--soft);min-width:6.5rem}
.starling dd{margin:0;overflow-wrap:anywhere}
.starling dd ul{margin:0;padding-left:1rem}
.starling code{font:0.92em ui-monospace,SFMono-Regular,Menlo,monospace;background:var(--head);padding:0 .3em;border-radius:3px;overflow-wrap:anywhere}
.starling input{font:inherit;padding:.25rem .5rem;width:min(100%,26rem);border:1px solid var(--soft);border-radius:4px;background:var(--bg);color:var(--fg)}
.starling button{font:inherit;padding:.25rem .8rem;border:1px solid var(--soft);border-radius:4px;background:var(--head);color:var(--fg)}
.starling form,.starling .search{margin:.4rem 0 .8rem}
.starling .bar-of-links{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;align-items:baseline;padding:.3rem .5rem;background:var(--head)}
.starling button.to{border:0;padding:0;background:none;color:var(--link);text-align:left;text-decoration:underline;cursor:pointer}
.starling.cwdb-no-default-styles{padding:.2rem .6rem 1rem}
.starling cwdb-action{display:none}
.starling .flag{white-space:nowrap}
@media (max-width:40rem){.starling main{padding:.25rem .6rem 2rem}}
@container (max-width:40rem){.starling .scroll{overflow:visible}
.starling table,.starling tbody{display:block}
.starling thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.starling tbody tr{display:flex;flex-wrap:wrap;gap:.1rem .8rem;padding:.4rem;border-bottom:1px solid var(--line)}
.starling tbody tr:last-child{border-bottom:0}
.starling tbody td{padding:0;border:0;white-space:normal;min-width:0;overflow-wrap:anywhere;text-align:left}
.starling tbody td.text,.starling tbody td:has(.bar){flex-basis:100%;min-width:0}
.starling tbody td:empty{display:none}
.starling tbody td::before{content:attr(data-name) " ";color:var(--soft);font-size:.85em}
.starling tbody td[data-name=State]::before,.starling tbody td[data-name=Health]::before{content:none}}
@media print{.starling header nav,.starling form,.starling .more{display:none}.starling .scroll+.scroll{margin-top:.6rem}
.starling .scroll{overflow:visible;border:0}.starling td,.starling th{white-space:normal;padding:.15rem .3rem}.starling{font-size:10px;background:#fff;color:#000}}
`;

/** The style of a whole page; the browser selects light or dark. */
export const style = `:root{color-scheme:light dark;${light}}
@media screen and (prefers-color-scheme:dark){:root{${dark}}}
@media print{:root{color-scheme:light}}
body{margin:0}${rules}`;

/** The style of a part of another page, which selects light or dark. Its rules do not affect the rest of that page. */
export function partStyle(theme: "light" | "dark"): string {
  return `.starling{color-scheme:${theme};${theme === "dark" ? dark : light}}${rules}`;
}
