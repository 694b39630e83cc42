/**
 * Dates of a generated row: elapsed time, season and time of day say together when it is, as in `DateColumn`
 * of the library.
 */

/** Places on a circle that are compared before the best is refined; as many as the library compares. */
const AROUND = 96;
const DAY = 86400e3;

/** A copy of generated features in which the elapsed time of each date is that of the date itself. */
export function withDates(header, values) {
  const dated = Float64Array.from(values);
  for (const column of header.columns ?? [])
    if (column.kind === "date") dated[column.at] = daysOf(column, values);
  return dated;
}

/** The days whose features are nearest to those of a column, among those that its dates keep to. */
function daysOf({ at, periods, scales, times, calendars }, values) {
  const days = periods.reduce((found, period, k) => {
    const around = [values[at + 1 + 2 * k], values[at + 2 + 2 * k]];
    return found + shiftOf(found, around, period, scales[0], scales[1 + k]);
  }, values[at]);
  return calendars ? calendars.reduce(dayOfCalendar, days) : times ? atTimes(days, times) : days;
}

/** The same day at the nearest time between two shares of it. */
function atTimes(days, [low, high]) {
  const midnight = Math.round(days - (low + high) / 2);
  return midnight + Math.min(Math.max(days - midnight, low), high);
}

/** The nearest day that lies so many days before a period begins: one of so many months, or of so many days. */
function dayOfCalendar(days, { months, days: length, first, before }) {
  const day = Math.round(days) + before;
  const begun = day - modulo(day - first, length);
  const [last, next] = months ? monthsAround(day, months, first) : [begun, begun + length];
  return (day - last > next - day ? next : last) - before;
}

/** The first days of the period of so many months that a day is in, and of the one after it. */
function monthsAround(day, length, first) {
  const date = new Date(day * DAY);
  const month = 12 * (date.getUTCFullYear() - 1970) + date.getUTCMonth();
  const start = month - modulo(month - first, length);
  return [start, start + length].map((each) => Date.UTC(1970, each) / DAY);
}

/** What is left of a whole number, below zero, too, by a division. */
function modulo(number, divisor) {
  return ((number % divisor) + divisor) % divisor;
}

/** How far days move, half a period at most, towards their place on a circle. */
function shiftOf(days, [cos, sin], period, unit, radius) {
  const step = period / AROUND;
  const costs = Array.from({ length: AROUND }, (_, k) => {
    const shift = k * step - period / 2;
    const angle = (2 * Math.PI * (days + shift)) / period;
    return (shift / unit) ** 2 + ((Math.cos(angle) - cos) ** 2 + (Math.sin(angle) - sin) ** 2) / radius ** 2;
  });
  const best = costs.indexOf(Math.min(...costs));
  const isInside = best > 0 && best < AROUND - 1;
  // A parabola through the best place and those beside it.
  const [low, middle, high] = [costs[best - 1], costs[best], costs[best + 1]];
  const bend = low - 2 * middle + high;
  const part = isInside && bend > 0 ? (low - high) / (2 * bend) : 0;
  return (best + part) * step - period / 2;
}
