// When a schedule ticks, in words. What has no simple words is given as it is.

import { list } from "./format.js";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SHORT_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const UNITS = [
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

export function timingInWords({ every, cron, tz }) {
  if (every !== null) return everyInWords(every);
  const words = cronInWords(cron);
  const zone = tz && tz !== "UTC" ? `, ${tz.replaceAll("_", " ")} time` : ", UTC";
  return words === null ? `By the cron expression ${cron}${zone}` : `${words}${zone}`;
}

export function everyInWords(seconds) {
  const [size, unit] = UNITS.find(([each]) => seconds % each === 0) ?? [1, "second"];
  return `Every ${measure(seconds / size, unit)}`;
}

const measure = (number, unit) => (Number(number) === 1 ? unit : `${number} ${unit}s`);

/** null for what is not simple. */
export function cronInWords(expression) {
  const fields = expression.trim().toUpperCase().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields;
  const time = timeOf(minute, hour);
  const days = daysOf(day, month, weekday);
  if (time === null || days === null) return null;
  return days === "every day" && time.startsWith("Every") ? time : `${time} ${days}`;
}

function timeOf(minute, hour) {
  const step = /^\*\/(\d+)$/;
  if (minute === "*" && hour === "*") return "Every minute";
  if (step.test(minute) && hour === "*") return `Every ${measure(step.exec(minute)[1], "minute")}`;
  const minutes = numbers(minute, 59);
  if (minutes === null) return null;
  const past = `${list(minutes.map(String))} ${minutes.length === 1 && minutes[0] === 1 ? "minute" : "minutes"} past`;
  if (hour === "*") return minutes.length === 1 && minutes[0] === 0 ? "Every hour, on the hour" : `Every hour, ${past}`;
  if (step.test(hour)) {
    const hours = measure(step.exec(hour)[1], "hour");
    return minutes.length === 1 && minutes[0] === 0 ? `Every ${hours}` : `Every ${hours}, ${past}`;
  }
  const hours = numbers(hour, 23);
  if (hours === null || hours.length * minutes.length > 6) return null;
  return `At ${list(hours.flatMap((h) => minutes.map((m) => `${pad(h)}:${pad(m)}`)))}`;
}

const pad = (value) => String(value).padStart(2, "0");

function daysOf(day, month, weekday) {
  const months = month === "*" ? "" : numbers(month, 12);
  if (months === null) return null;
  const inMonths = months === "" ? "" : ` in ${list(months.map((each) => MONTHS[each - 1]))}`;
  if (day === "*" && weekday === "*") return inMonths ? `every day${inMonths}` : "every day";
  if (day === "L" && weekday === "*") return `on the last day of ${months === "" ? "every month" : list(months.map((each) => MONTHS[each - 1]))}`;
  if (weekday === "*") {
    const days = numbers(day, 31);
    return days && `on day ${list(days.map(String))} of ${months === "" ? "every month" : list(months.map((each) => MONTHS[each - 1]))}`;
  }
  if (day !== "*") return null;
  return weekdaysOf(weekday, inMonths);
}

function weekdaysOf(weekday, inMonths) {
  const named = weekday.replace(/[A-Z]{3}/g, (name) => (SHORT_DAYS.includes(name) ? String(SHORT_DAYS.indexOf(name)) : name));
  const range = /^(\d)-(\d)$/.exec(named);
  if (range && DAYS[range[1]] && DAYS[range[2]]) return `${DAYS[range[1]]} to ${DAYS[range[2]]}${inMonths}`;
  const days = numbers(named, 7);
  return days && `on ${list(days.map((each) => DAYS[each]))}${inMonths}`;
}

/** The numbers of a field that is a list of them; null for all else. */
function numbers(field, most) {
  if (!/^\d+(,\d+)*$/.test(field)) return null;
  const found = field.split(",").map(Number);
  return found.every((each) => each <= most) ? found : null;
}
