/** The subset of CloudWatch's filter patterns that Starling uses: `{ ($.a = "x" && $.b = "y") || ($.c = "z") }`. */

type Matches = (line: unknown) => boolean;

/** A pattern that is not valid or not supported. An error is better than an empty result. */
export class FilterPatternError extends Error {}

const tokens = /\s*(?:(?<word>\$(?:\.[A-Za-z_]\w*)+|&&|\|\||[(){}=])|"(?<text>[^"*]*)")/y;

interface Token {
  readonly word?: string;
  readonly text?: string;
}

/** @throws FilterPatternError */
export function parseFilterPattern(pattern: string): Matches {
  const rest = read(pattern);
  const next = () => rest[0]?.word;
  const take = (word: string) => {
    if (rest.shift()?.word !== word) throw unknown(pattern, `lacks ${word}`);
  };

  function either(): Matches {
    const parts = [both()];
    while (next() === "||") {
      take("||");
      parts.push(both());
    }
    return (line) => parts.some((part) => part(line));
  }
  function both(): Matches {
    const parts = [one()];
    while (next() === "&&") {
      take("&&");
      parts.push(one());
    }
    return (line) => parts.every((part) => part(line));
  }
  function one(): Matches {
    if (next() === "(") {
      take("(");
      const inner = either();
      take(")");
      return inner;
    }
    const path = rest.shift()?.word?.split(".").slice(1);
    if (path === undefined || path.length === 0) throw unknown(pattern, "lacks a field such as $.name");
    take("=");
    const desired = rest.shift()?.text;
    if (desired === undefined) throw unknown(pattern, "does not compare with a quoted text without *");
    return (line) => valueAt(line, path) === desired;
  }

  take("{");
  const matches = either();
  take("}");
  if (rest.length > 0) throw unknown(pattern, "has text after its end");
  return matches;
}

function read(pattern: string): Token[] {
  const found: Token[] = [];
  tokens.lastIndex = 0;
  const end = pattern.trimEnd().length;
  while (tokens.lastIndex < end) {
    const at = tokens.lastIndex;
    const groups = tokens.exec(pattern)?.groups;
    if (groups === undefined) throw unknown(pattern, `cannot be read from character ${at} on`);
    found.push(groups as Token);
  }
  return found;
}

function unknown(pattern: string, why: string): FilterPatternError {
  return new FilterPatternError(
    `Invalid filter pattern ${pattern}: it ${why}; write { $.field = "text" }, joined by && and ||`,
  );
}

function valueAt(line: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Readonly<Record<string, unknown>> | null)?.[name], line);
}
