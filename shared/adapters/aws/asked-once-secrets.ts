import { SharedQuestions } from "#shared/adapters/aws/shared-questions.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { SecretReader } from "#shared/ports.ts";

/**
 * Another reader, asked once at a time, and again only some time after it failed: for a door at which anybody may knock,
 * while the secret has no value, too.
 */
export class AskedOnceSecrets implements SecretReader {
  readonly #reader: SecretReader;
  readonly #questions: SharedQuestions<string>;

  constructor(reader: SecretReader, clock: Clock) {
    this.#reader = reader;
    this.#questions = new SharedQuestions(clock);
  }

  read(name: string): Promise<string> {
    return this.#questions.ask(name, () => this.#reader.read(name));
  }
}
