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
  /** The common beginning of all texts that have these first parts. */
  readonly start: (parts: FirstPartsOf<Form>) => string;
  /** True of the parts of a text of this form, split at each `#`. */
  readonly fits: (parts: readonly string[]) => boolean;
  /** The form for policies, with `*` in the place of names. */
  readonly pattern: PatternOf<Form>;
}

/** A part of a form: the name of a field, or a text that stands for itself. */
interface Place {
  readonly field: string | undefined;
  readonly text: string;
}

/**
 * A text of named parts, such as `SYNC#:namespace#:name`: what makes it also reads it. No part that is read holds a `#`,
 * so that no name can pass for two parts.
 */
export function textForm<const Form extends string>(form: Form): TextForm<Form> {
  const places = form
    .split("#")
    .map((text): Place => ({ field: text.startsWith(":") ? text.slice(1) : undefined, text }));
  return {
    text: (parts: Readonly<Record<string, string>>) =>
      places.map(({ field, text }) => (field === undefined ? text : parts[field])).join("#"),
    parse(text) {
      const parts = text.split("#");
      return fitting(places, parts) ? (named(places, parts) as PartsOf<Form>) : undefined;
    },
    fits: (parts) => fitting(places, parts),
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
  /** True of a key of this form, either half of it split at each `#`. */
  readonly fits: (pk: readonly string[], sk: readonly string[]) => boolean;
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
    fits: (first, second) => ofPk.fits(first) && ofSk.fits(second),
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
function filled(places: readonly Place[], parts: Readonly<Record<string, string | undefined>>): readonly string[] {
  const found: string[] = [];
  for (const { field, text } of places) {
    const part = field === undefined ? text : parts[field];
    if (part === undefined) break;
    found.push(part);
  }
  return found;
}

function fitting(places: readonly Place[], parts: readonly string[]): boolean {
  return (
    parts.length === places.length && places.every(({ field, text }, at) => field !== undefined || text === parts[at])
  );
}

function named(places: readonly Place[], parts: readonly string[]): Readonly<Record<string, string | undefined>> {
  const found: Record<string, string | undefined> = {};
  for (const [at, { field }] of places.entries()) if (field !== undefined) found[field] = parts[at];
  return found;
}
