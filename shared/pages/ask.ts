/** How the pages get what they show. */

/**
 * Asks the API for what is below `/v1`, with the rights of whoever looks.
 * @throws Refusal for what the API refuses, any Error when there was no answer.
 */
export type Ask = <T>(path: string, query?: Readonly<Record<string, string | undefined>>) => Promise<T>;

/** The API understood and refused. */
export class Refusal extends Error {
  /** Of HTTP. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
  }
}
