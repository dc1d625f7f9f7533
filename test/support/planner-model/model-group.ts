import { defined } from "#shared/base/defined.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";

/** The property of clusters by which the renderings of a template differ. */
export type Paths = "one" | "ring" | "flavour" | "cluster";
const pathOf: Readonly<Record<Paths, string>> = {
  one: ".",
  ring: "rings/{{ cluster.labels.ring }}",
  flavour: "flavours/{{ cluster.labels.flavour }}",
  cluster: "clusters/{{ cluster.name }}",
};

/** A change of people to one template or one stage. Repeating it takes it back. */
export type GroupAct =
  | { readonly do: "template"; readonly what: "drop" | "rename"; readonly at: number }
  /** Disables a template for the clusters of a ring. */
  | { readonly do: "disable"; readonly at: number; readonly ring: number }
  /** Removes a stage, whose clusters join a later one; or gives one stage another name. */
  | { readonly do: "stage"; readonly what: "merge" | "rename"; readonly at: number };

/** The group as people have written it. */
export class ModelGroup {
  readonly paths: Paths;
  #strategy: Partial<RolloutStrategy>;
  #count: number;
  /** The places of templates that are removed, or have their other name. */
  readonly #dropped = new Set<number>();
  readonly #renamed = new Set<number>();
  /** The disabled templates, by place and ring. */
  readonly #disabled = new Set<string>();
  /** The places of stages that are removed, or have their other name. */
  readonly #merged = new Set<number>();
  readonly #otherNames = new Set<number>();
  /** How often all stages, and all templates, got other names. */
  #names = 0;
  #templateNames = 0;
  #isOptional = false;
  #guard: object | undefined;

  constructor(strategy: Partial<RolloutStrategy>, count: number, paths: Paths, guard?: object) {
    this.#guard = guard;
    this.#strategy = strategy;
    this.#count = count;
    this.paths = paths;
  }

  setStrategy(strategy: Partial<RolloutStrategy>): void {
    this.#strategy = strategy;
    for (const places of [this.#merged, this.#otherNames]) places.clear();
    this.#names = 0;
  }

  setGuard(guard: object | undefined): void {
    this.#guard = guard;
  }

  guard(): object | undefined {
    return this.#guard;
  }

  setCount(count: number): void {
    this.#count = count;
    this.#dropped.clear();
  }

  /** Makes all stages optional, so that a first stage without clusters passes. */
  makeOptional(): void {
    this.#isOptional = true;
  }

  renameAll(): void {
    this.#names++;
  }

  renameTemplates(): void {
    this.#templateNames++;
  }

  /** The number of templates, including removed ones. */
  count(): number {
    return this.#count;
  }

  act({ at, ...act }: GroupAct): void {
    if (act.do === "disable") toggle(this.#disabled, `${at % this.#count} ${act.ring}`);
    else if (act.do === "template" && act.what === "rename") toggle(this.#renamed, at % this.#count);
    else if (act.do === "template") this.#drop(at % this.#count);
    else {
      const { stages = [] } = this.#strategy;
      if (act.what === "rename") toggle(this.#otherNames, at % Math.max(1, stages.length));
      // The last stage has the clusters that no other stage selects.
      else if (stages.length > 1) toggle(this.#merged, at % (stages.length - 1));
    }
  }

  /** Removes a template or brings it back. One template always stays. */
  #drop(place: number): void {
    if (this.#dropped.has(place) || this.present().length > 1) toggle(this.#dropped, place);
  }

  /** The places of the templates that are not removed. */
  present(): readonly number[] {
    return Array.from({ length: this.#count }, (_, place) => place).filter((place) => !this.#dropped.has(place));
  }

  strategy(): Partial<RolloutStrategy> {
    const stages = this.#strategy.stages?.map((stage, place) => {
      const name = `${stage.name}${this.#otherNames.has(place) ? "y" : ""}${"x".repeat(this.#names)}`;
      return { ...stage, name, ...(this.#isOptional ? { optional: true } : {}) };
    });
    return { ...this.#strategy, ...defined({ stages: stages?.filter((_, place) => !this.#merged.has(place)) }) };
  }

  templates(): readonly unknown[] {
    return this.present().map((place) => {
      const rings = [0, 1, 2].filter((ring) => this.#disabled.has(`${place} ${ring}`));
      const overrides = rings.map((ring) => ({
        clusters: { selector: { matchLabels: { ring: `r${ring}` } } },
        disabled: true,
      }));
      const name = `t${place}${this.#renamed.has(place) ? "y" : ""}${"z".repeat(this.#templateNames)}`;
      return { name, source: "app", path: pathOf[this.paths], ...(overrides.length === 0 ? {} : { overrides }) };
    });
  }
}

function toggle<Value>(set: Set<Value>, value: Value): void {
  if (!set.delete(value)) set.add(value);
}
