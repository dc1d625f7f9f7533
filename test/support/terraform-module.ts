/** A module in Terraform's language: read by a parser of that language, with its expressions put in their places. */
import { parseToObject } from "hcl2-parser";

type Block = Readonly<Record<string, unknown>>;

interface ParsedModule {
  readonly variable: Readonly<Record<string, readonly [{ readonly default?: unknown }]>>;
  readonly resource: Readonly<Record<string, Readonly<Record<string, readonly [Block]>>>>;
  readonly output: Readonly<Record<string, readonly [{ readonly value: unknown }]>>;
}

export interface TerraformModule {
  /** By `type.name`, with everything in its place. */
  readonly resources: ReadonlyMap<string, Block>;
  readonly outputs: ReadonlyMap<string, unknown>;
}

/**
 * Knows references, texts with `${…}` in them, `coalesce`, `trimprefix`, `jsonencode` of one object, a dynamic block over a
 * variable, and resources of which there are none or one. @param given - variables, and what only AWS knows, by the reference. @throws Error on anything else.
 */
export function terraformModule(text: string, given: Readonly<Record<string, unknown>>): TerraformModule {
  const parsed = parse(text) as unknown as ParsedModule;
  const defaults = Object.entries(parsed.variable).map(([name, [variable]]) => [`var.${name}`, variable.default]);
  const known = new Map<string, unknown>([...(defaults as [string, unknown][]), ...Object.entries(given)]);

  function referred(reference: string): unknown {
    if (known.has(reference)) return known.get(reference);
    const [, type = "", name = "", rest = ""] = /^(\w+)\.(\w+)\.([\w.[\]]+)$/.exec(reference) ?? [];
    const path = rest.split(/[.[\]]+/).filter((part) => part !== "");
    const found = path.reduce<unknown>(
      (value, part) => (value as Block | undefined)?.[part],
      parsed.resource[type]?.[name]?.[0],
    );
    if (found === undefined) throw new Error(`${reference} is neither given nor in the module`);
    return placed(found);
  }

  function expressed(expression: string): unknown {
    const choice = /^([\w.]+)(?: == (".*"))? \? (\d) : (\d)$/.exec(expression);
    if (choice !== null) {
      const [, of = "", equals = "true", yes, no] = choice;
      return Number(referred(of) === JSON.parse(equals) ? yes : no);
    }
    const [, call, inner = ""] = /^(\w+)\((.*)\)$/s.exec(expression) ?? [];
    if (call === undefined) return referred(expression);
    if (call === "jsonencode") return placed(parse(`it = ${inner}`).it);
    const [first, second] = inner.split(/,\s*(?=[^,]*$)/).map((part) => part.trim());
    const [left, right] = [argument(first ?? ""), argument(second ?? "")];
    if (call === "coalesce") return left ?? right;
    if (call === "trimprefix") return String(left).replace(new RegExp(`^${RegExp.escape(String(right))}`), "");
    throw new Error(`${call} is not played here`);
  }

  function argument(text: string): unknown {
    return text.startsWith('"') ? placed(JSON.parse(text)) : expressed(text);
  }

  function placed(value: unknown): unknown {
    if (typeof value === "string") {
      const whole = /^\$\{((?:[^{}]|\{.*\})*)\}$/s.exec(value)?.[1];
      if (whole !== undefined) return expressed(whole);
      return value.replaceAll(/\$\{([^{}]+)\}/g, (_, expression: string) => String(expressed(expression)));
    }
    if (Array.isArray(value)) return value.map(placed);
    if (typeof value !== "object" || value === null) return value;
    const { dynamic, ...plain } = value as Block;
    return { ...mapped(plain), ...(dynamic === undefined ? {} : unrolled(dynamic as Block)) };
  }

  function mapped(block: Block): Block {
    return Object.fromEntries(Object.entries(block).map(([name, value]) => [name, placed(value)]));
  }

  /** One block for each of the list, of the members that it has. */
  function unrolled(dynamic: Block): Block {
    const entries = Object.entries(dynamic).map(([name, blocks]) => {
      const [{ for_each, content }] = blocks as [{ for_each: unknown; content: [Block] }];
      const items = placed(for_each) as readonly Block[];
      const made = items.map((item) =>
        Object.fromEntries(
          Object.entries(content[0]).flatMap(([field, expression]) => {
            const [, of] = /^\$\{rule\.value\.(\w+)\}$/.exec(String(expression)) ?? [];
            if (of === undefined) throw new Error(`${String(expression)} is not played here`);
            return item[of] === undefined ? [] : [[field, item[of]]];
          }),
        ),
      );
      return [name, made];
    });
    return Object.fromEntries(entries);
  }

  const resources = Object.entries(parsed.resource).flatMap(([type, named]) =>
    Object.entries(named).flatMap(([name, [block]]) => {
      const { count = 1, ...made } = placed(block) as Block;
      return count === 1 ? [[`${type}.${name}`, made as Block] as const] : [];
    }),
  );
  const outputs = Object.entries(parsed.output).map(([name, [{ value }]]) => [name, placed(value)] as const);
  return { resources: new Map(resources), outputs: new Map(outputs) };
}

/** @throws Error where the text is not of the language. */
function parse(text: string): Block {
  const [parsed, problem] = parseToObject(text) as readonly [Block | null, unknown];
  if (problem !== null || parsed === null) throw new Error(`this is no HCL: ${JSON.stringify(problem)}`);
  return parsed;
}
