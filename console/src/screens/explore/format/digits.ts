// Decimal digits of numbers, rounded to nearest and half away from zero, as the program rounds them.

/** Formats the absolute value of a number with a count of digits after the point. */
export function fixed(number: number, precision: number): string {
  const value = Math.abs(number);
  if (value < 1e21) return value.toFixed(precision);
  return BigInt(value).toString() + (precision > 0 ? `.${"0".repeat(precision)}` : "");
}

/** The digits of a finite number in scientific form: `d.ddd` times ten to the `exponent`. */
export class Digits {
  constructor(
    readonly digits: string,
    readonly exponent: number,
  ) {}

  /** Returns a count of significant digits of the absolute value, at least one. */
  static significant(number: number, count: number): Digits {
    return Digits.read(Math.abs(number).toExponential(Math.max(count, 1) - 1));
  }

  /** Returns the fewest digits that identify the number. */
  static shortest(number: number): Digits {
    return Digits.read(Math.abs(number).toExponential());
  }

  private static read(scientific: string): Digits {
    const [digits = "0", exponent = "0"] = scientific.split("e");
    return new Digits(digits.replace(".", ""), Number(exponent));
  }

  /** Formats the digits without an exponent. */
  plain(): string {
    const { digits, exponent } = this;
    if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
    if (exponent + 1 >= digits.length) return digits + "0".repeat(exponent + 1 - digits.length);
    return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
  }

  /** Formats the digits with an exponent: `1.5e+3`. */
  scientific(): string {
    const rest = this.digits.slice(1);
    return `${this.digits[0]}${rest === "" ? "" : "."}${rest}e${this.exponent < 0 ? "-" : "+"}${Math.abs(this.exponent)}`;
  }
}
