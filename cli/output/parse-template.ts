import {
  type Filter,
  JsonPathError,
  type Operator,
  operators,
  type Part,
  type Slice,
  type Template,
  type TemplatePath,
  type TemplateStep,
} from "#cli/output/template.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** @throws JsonPathError that names the place and the expected text. */
export function parseTemplate(text: string): Template {
  return new TemplateReader(text).read();
}

interface OpenRange {
  readonly at: number;
  readonly each: TemplatePath;
  readonly body: Part[];
}

/** Characters that end the name of a field. */
const endsName = /[ \t\r\n.,[\]$@{}]/;
const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

class TemplateReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Template {
    const all: Part[] = [];
    const open: OpenRange[] = [];
    for (;;) {
      const parts = open.at(-1)?.body ?? all;
      const brace = this.#text.indexOf("{", this.#at);
      const text = this.#text.slice(this.#at, brace === -1 ? undefined : brace);
      if (text !== "") parts.push({ text });
      if (brace === -1) break;
      this.#at = brace + 1;
      const word = /^ *(range|end)(?=[^A-Za-z0-9_-])/.exec(this.#text.slice(this.#at));
      this.#at += word?.[0].length ?? 0;
      const path = this.#path("}");
      if (word?.[1] === "range") open.push({ at: brace, each: path, body: [] });
      else if (word?.[1] === "end") this.#end(open, { all, brace });
      else parts.push({ path });
    }
    const last = open.at(-1);
    if (last !== undefined) throw this.#wrong(last.at, "this range has no end", "write {end} after the repeated part");
    return all;
  }

  #end(open: OpenRange[], { all, brace }: { readonly all: Part[]; readonly brace: number }): void {
    const ended = open.pop();
    if (ended === undefined) throw this.#wrong(brace, "{end} has no range", "write {range .items[*]} before it");
    (open.at(-1)?.body ?? all).push({ each: ended.each, body: ended.body });
  }

  /** @param close - the end of the path; it is read too. */
  #path(close: string): TemplatePath {
    const start = this.#at;
    const steps: TemplateStep[] = [];
    for (;;) {
      const rest = this.#text.slice(this.#at);
      if (rest.startsWith(close)) {
        this.#at += close.length;
        return steps;
      }
      const character = rest.charAt(0);
      if (character === "" || character === "\n" || character === "\r") {
        throw this.#wrong(start, `this expression has no ${close}`, "write {.metadata.name}");
      }
      if (character === " " || character === "@" || character === "$") this.#at += 1;
      else steps.push(...this.#step(rest, close));
    }
  }

  #step(rest: string, close: string): readonly TemplateStep[] {
    if (rest.startsWith("..")) {
      this.#at += 2;
      const isNamed = /^\.\.[\p{L}\p{Nd}_]/u.test(rest);
      return isNamed ? [{ kind: "descent" }, this.#field(close)] : [{ kind: "descent" }];
    }
    if (rest.startsWith("[?(")) return [{ kind: "filter", filter: this.#filter() }];
    if (rest.startsWith("[")) return this.#brackets();
    if (rest.startsWith('"') || rest.startsWith("'")) return [{ kind: "literal", value: this.#quoted() }];
    if (rest.startsWith(".")) {
      this.#at += 1;
      return [this.#field(close)];
    }
    return [{ kind: "literal", value: this.#word(rest) }];
  }

  #field(close: string): TemplateStep {
    let name = "";
    for (; this.#at < this.#text.length; this.#at++) {
      let character = this.#text.charAt(this.#at);
      if (character === "\\") character = this.#text.charAt(++this.#at);
      else if (endsName.test(character) || this.#text.startsWith(close, this.#at)) break;
      name += character;
    }
    return name === "*" ? { kind: "all" } : { kind: "field", name };
  }

  /** A number or a boolean. */
  #word(rest: string): number | boolean {
    const number = /^[+-]?[0-9]+(\.[0-9]+)?/.exec(rest)?.[0];
    const word = number ?? /^[\p{L}\p{Nd}_][^ \t\r\n.,[\]$@{}=!<>()]*/u.exec(rest)?.[0];
    if (word === undefined) {
      throw this.#wrong(
        this.#at,
        "a step cannot begin with this",
        "write .NAME, [0], [*], [?(...)], .. or a text in quotes",
      );
    }
    if (number === undefined && word !== "true" && word !== "false") {
      throw this.#wrong(this.#at, `${excerpt(word)} is not an expression`, `write .${excerpt(word)} for a field`);
    }
    this.#at += word.length;
    return number === undefined ? word === "true" : Number(number);
  }

  #quoted(): string {
    const start = this.#at;
    const quote = this.#text.charAt(this.#at++);
    let value = "";
    for (;;) {
      const character = this.#text.charAt(this.#at++);
      if (character === quote) return value;
      if (character === "" || character === "\n")
        throw this.#wrong(start, "this text has no closing quote", `add ${quote}`);
      value += character === "\\" ? this.#escaped() : character;
    }
  }

  #escaped(): string {
    const rest = this.#text.slice(this.#at);
    const [code, hex = ""] =
      /^x([0-9a-fA-F]{2})|^u([0-9a-fA-F]{4})/.exec(rest)?.filter((part) => part !== undefined) ?? [];
    if (code !== undefined) {
      this.#at += code.length;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const character = rest.charAt(0);
    const plain = escapes[character] ?? (/["'\\]/.test(character) ? character : undefined);
    if (plain === undefined) {
      throw this.#wrong(
        this.#at - 1,
        `there is no escape \\${excerpt(character)}`,
        'write "\\n", "\\t", "\\\\" or "\\u00e9"',
      );
    }
    this.#at += 1;
    return plain;
  }

  /** `[?(LEFT OPERATOR RIGHT)]`, or `[?(LEFT)]`. */
  #filter(): Filter {
    const start = this.#at;
    const [whole, inside = ""] =
      /^\[\?\(((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^)"'])*)\)\]/.exec(this.#text.slice(start)) ?? [];
    if (whole === undefined) {
      throw this.#wrong(start, "this filter does not end with )]", 'write [?(@.type=="Ready")]');
    }
    const [before, left = "", operator = ""] = /^([^!<>=~"']+)([!<>=~]+)/.exec(inside) ?? [];
    this.#at = start + "[?(".length;
    if (before === undefined) return { left: this.#path(")]") };
    const known = operators.find((one) => one === operator);
    if (known === undefined) {
      const expected = `write one of ${operators.join(" ")}`;
      throw this.#wrong(this.#at + left.length, `${excerpt(operator)} is not an operator`, expected);
    }
    return { left: this.#path(known), compared: { operator: known satisfies Operator, right: this.#path(")]") } };
  }

  /** An index, a slice, a key in quotes, or several of them. */
  #brackets(): readonly TemplateStep[] {
    const start = this.#at;
    const [whole, inside = ""] = /^\[((?:'[^']*'|[^\]'\n])*)\]/.exec(this.#text.slice(start)) ?? [];
    if (whole === undefined) throw this.#wrong(start, "this bracket is not closed", "write [0], [*] or ['NAME']");
    this.#at += whole.length;
    const entries = inside.match(/(?:'[^']*'|[^,'])+/g) ?? [""];
    const paths = entries.map((entry) => this.#entry(entry.trim(), start));
    const [only] = paths;
    return only !== undefined && paths.length === 1 ? only : [{ kind: "union", paths }];
  }

  #entry(text: string, at: number): TemplatePath {
    if (text === "*") return [{ kind: "all" }];
    const key = /^'(.*)'$/s.exec(text)?.[1];
    if (key !== undefined) {
      const names = key.match(/(?:\\.|[^.\\])+/gs) ?? [];
      return names.map((name) => (name === "*" ? { kind: "all" } : { kind: "field", name: name.replaceAll("\\", "") }));
    }
    const [found, from, second, third] = /^(-?\d+)?(:(?:-?\d+)?)?(:(?:-?\d+)?)?$/.exec(text) ?? [];
    if (found === undefined) {
      const remedy = /^"/.test(text)
        ? `write '${excerpt(text.replaceAll('"', ""))}': a key needs single quotes`
        : "write [0], [-1], [0:2], [*], ['NAME'] or [?(@.type==\"Ready\")]";
      throw this.#wrong(at, `[${excerpt(text)}] is not an index, a slice or a key`, remedy);
    }
    const slice: Slice =
      second === undefined
        ? { index: Number(from ?? 0) }
        : { from: numberOf(from), to: numberOf(second.slice(1)), step: numberOf(third?.slice(1)) };
    if ("step" in slice && slice.step !== undefined && slice.step <= 0) {
      throw this.#wrong(
        at,
        `the step of [${excerpt(text)}] is ${slice.step}`,
        "write a step of 1 or more, such as [0:10:2]",
      );
    }
    return [{ kind: "slice", slice }];
  }

  #wrong(at: number, what: string, remedy: string): JsonPathError {
    const near = excerpt(this.#text.slice(at, at + 24));
    return new JsonPathError(`at character ${at + 1} (${near === "" ? "the end" : near}) ${what}; ${remedy}`);
  }
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined || text === "" ? undefined : Number(text);
}
