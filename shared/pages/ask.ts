/** How the pages get what they show. */

/**
 * Asks the API for what is below `/v1`, with the rights of whoever looks.
 * @throws Refusal for what the API refuses, any Error when there was no answer.
 */
export type Ask = <T>(path: string, query?: Readonly<Record<string, string | undefined>>) => Promise<T>;

export interface RefusalDetails {
  /** The API's own word for it: `NotFound`, `Internal`. */
  readonly code?: string;
  /** Of what the logs of the installation say about it: `starling logs --id`. */
  readonly correlationId?: string;
}

/** The API answered, and not with what was asked for. */
export class Refusal extends Error {
  /** Of HTTP. */
  readonly status: number;
  readonly code: string | undefined;
  readonly correlationId: string | undefined;

  constructor(status: number, message: string, { code, correlationId }: RefusalDetails = {}) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.code = code;
    this.correlationId = correlationId;
  }
}

/** What may be gone, or not be there yet. */
export async function unlessNone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined;
    throw error;
  }
}
