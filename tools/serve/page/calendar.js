// The calendars of the CF conventions: days as dates, and back. Days are counted from 1970-01-01 of each calendar.

const before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
const reform = -141427;  // 1582-10-15

/** Years begin in March, so that a leap day is the last one. */
const fromMarch = (month, day) => Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;

function marchDate(year, dayOfYear) {
  const march = Math.floor((5 * dayOfYear + 2) / 153);
  const month = march + (march < 10 ? 3 : -9);
  return [year + (month <= 2 ? 1 : 0), month, dayOfYear - Math.floor((153 * march + 2) / 5) + 1];
}

const gregorian = {
  days(year, month, day) {
    const y = year - (month <= 2 ? 1 : 0);
    const era = Math.floor(y / 400);
    const of = y - era * 400;
    return era * 146097 + of * 365 + Math.floor(of / 4) - Math.floor(of / 100) + fromMarch(month, day) - 719468;
  },
  date(days) {
    const era = Math.floor((days + 719468) / 146097);
    const day = days + 719468 - era * 146097;
    const of = Math.floor((day - Math.floor(day / 1460) + Math.floor(day / 36524) - Math.floor(day / 146096)) / 365);
    return marchDate(era * 400 + of, day - (365 * of + Math.floor(of / 4) - Math.floor(of / 100)));
  },
};

const julian = {
  days(year, month, day) {
    const y = year - (month <= 2 ? 1 : 0);
    const era = Math.floor(y / 4);
    return era * 1461 + (y - era * 4) * 365 + fromMarch(month, day) - 719470;
  },
  date(days) {
    const era = Math.floor((days + 719470) / 1461);
    const day = days + 719470 - era * 1461;
    const of = Math.floor((day - Math.floor(day / 1460)) / 365);
    return marchDate(era * 4 + of, day - 365 * of);
  },
};

/** Years of one length. */
function fixed(length) {
  const months = length === 360 ? before.map((_, k) => 30 * k) : before.map((days, k) => days + (length === 366 && k > 1 ? 1 : 0));
  return {
    days: (year, month, day) => (year - 1970) * length + months[month - 1] + day - 1,
    date(days) {
      const year = Math.floor(days / length);
      const day = days - year * length;
      let month = 12;
      while (months[month - 1] > day) --month;
      return [year + 1970, month, day - months[month - 1] + 1];
    },
  };
}

const calendars = {
  proleptic_gregorian: gregorian,
  julian,
  standard: {
    days(year, month, day) {
      const days = gregorian.days(year, month, day);
      return days >= reform ? days : julian.days(year, month, day);
    },
    date: (days) => (days >= reform ? gregorian : julian).date(days),
  },
  noleap: fixed(365),
  all_leap: fixed(366),
  '360_day': fixed(360),
};

const two = (n) => String(n).padStart(2, '0');

/** Days with their fraction as ISO 8601, to the millisecond: "1850-02-30", "2020-01-01T12:30:00". */
export function dateText(calendar, days) {
  const milliseconds = Math.round(days * 864e5);
  const day = Math.floor(milliseconds / 864e5);
  const rest = milliseconds - day * 864e5;
  const [year, month, date] = calendars[calendar].date(day);
  const sign = year < 0 ? '-' : year > 9999 ? '+' : '';
  const text = `${sign}${String(Math.abs(year)).padStart(sign ? 6 : 4, '0')}-${two(month)}-${two(date)}`;
  if (rest === 0) return text;
  const seconds = Math.floor(rest / 1000);
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `${text}T${clock}${rest % 1000 ? `.${String(rest % 1000).padStart(3, '0')}` : ''}`;
}

/** The reverse, also of a year or a month alone; NaN for what is no date. */
export function dateDays(calendar, text) {
  const found = /^([+-]?\d{4,6})(?:-(\d\d?))?(?:-(\d\d?))?(?:[T ](\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?)?Z?$/.exec(text.trim().replace('−', '-'));
  if (!found) return NaN;
  const [, year, month = 1, day = 1, hour = 0, minute = 0, second = 0] = found.map((part) => (part === undefined ? undefined : Number(part)));
  if (month < 1 || month > 12 || day < 1 || day > 31) return NaN;
  return calendars[calendar].days(year, month, day) + (hour * 3600 + minute * 60 + second) / 86400;
}
