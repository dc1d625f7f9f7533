import { keyText, type RowKey, type RowKeyOf, type RowRange } from "#shared/fleet/rows/row.ts";

/** The names of the parts of a form: `cluster` of `CL#:cluster`. */
type FieldsOf<Form extends string> = Form extends `${infer First}#${infer Rest}`
  ? FieldsOf<First> | FieldsOf<Rest>
  : Form extends `:${infer Field}`
    ? Field
    : never;

type PartsOf<Form extends string> = Readonly<Record<FieldsOf<Form>, string>>;
type FirstPartsOf<Form extends string> = { readonly [Field in FieldsOf<Form>]?: string | undefined };

type PatternOf<Form extends string> = Form extends `${infer First}#${infer Rest}`
  ? PatternOf<First> extends "*"
    ? PatternOf<Rest> extends "*"
      ? "*"
      : `*#${PatternOf<Rest>}`
    : `${PatternOf<First>}#${PatternOf<Rest>}`
  : Form extends `:${string}`
    ? "*"
    : Form;

interface TextForm<Form extends string> {
  readonly text: (parts: PartsOf<Form>) => string;
  /** @returns undefined for a text of another form. */
  readonly parse: (text: string) => PartsOf<Form> | undefined;
  /** What all texts begin with that have these parts, which are the first of them. */
  readonly start: (parts: FirstPartsOf<Form>) => string;
  /** As a policy grants it: `*` stands for names. */
  readonly pattern: PatternOf<Form>;
}

/**
 * A text of named parts, such as `SYNC#:namespace#:name`: what makes it also reads it. No part that is read holds a `#`,
 * so that no name can pass for two parts.
 */
export function textForm<const Form extends string>(form: Form): TextForm<Form> {
  const places = form.split("#");
  return {
    text: (parts) => filled(places, parts).join("#"),
    parse: (text) => takenApart(places, text) as PartsOf<Form> | undefined,
    start: (parts) =>
      filled(places, parts)
        .map((part) => `${part}#`)
        .join(""),
    pattern: form.replace(/:[^#]+(#:[^#]+)*/g, "*") as PatternOf<Form>,
  };
}

export interface KeyForm<Type extends string, Pk extends string, Sk extends string> {
  readonly type: Type;
  /** Its partitions, as a policy grants them. */
  readonly partition: PatternOf<Pk>;
  readonly key: (parts: PartsOf<Pk> & PartsOf<Sk>) => RowKeyOf<Type>;
  /** @returns undefined for a key of another form. */
  readonly parse: (key: RowKey) => (PartsOf<Pk> & PartsOf<Sk>) | undefined;
  /** All rows that have these parts, which are the first of their keys. */
  readonly range: (parts: PartsOf<Pk> & FirstPartsOf<Sk>) => RowRange<Type>;
}

/** The keys of one kind of row: a form for either half. */
export function keyForm<Type extends string, const Pk extends string, const Sk extends string>(
  type: Type,
  pk: Pk,
  sk: Sk,
): KeyForm<Type, Pk, Sk> {
  const [ofPk, ofSk] = [textForm(pk), textForm(sk)];
  return {
    type,
    partition: ofPk.pattern,
    key: (parts) => ({ pk: ofPk.text(parts), sk: ofSk.text(parts) }),
    parse(key) {
      const [first, second] = [ofPk.parse(key.pk), ofSk.parse(key.sk)];
      return first === undefined || second === undefined ? undefined : { ...first, ...second };
    },
    range(parts) {
      const prefix = ofSk.start(parts);
      return { pk: ofPk.text(parts), ...(prefix === "" ? {} : { prefix }) };
    },
  };
}

/** @throws Error for a key of another form than whoever has the row knows it to have. */
export function required<Parts>(parts: Parts | undefined, key: RowKey): Parts {
  if (parts === undefined) throw new Error(`the key ${keyText(key)} is of another form than its row`);
  return parts;
}

/** As far as the parts are known. */
function filled(places: readonly string[], parts: Readonly<Record<string, string | undefined>>): readonly string[] {
  const found: string[] = [];
  for (const place of places) {
    const text = place.startsWith(":") ? parts[place.slice(1)] : place;
    if (text === undefined) break;
    found.push(text);
  }
  return found;
}

function takenApart(places: readonly string[], text: string): Readonly<Record<string, string>> | undefined {
  const found = text.split("#");
  if (found.length !== places.length) return undefined;
  const parts: Record<string, string> = {};
  for (const [index, part] of found.entries()) {
    const place = places[index] ?? "";
    if (place.startsWith(":")) parts[place.slice(1)] = part;
    else if (place !== part) return undefined;
  }
  return parts;
}
