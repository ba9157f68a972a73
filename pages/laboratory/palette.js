// The colours of members, for the laboratory and for reports: a partition has the colour of its owner.

// Distinct also without red and green: hue, saturation, lightness.
const OWNER_COLOURS = [[205, 62, 56], [32, 82, 60], [158, 50, 46], [336, 52, 62], [255, 45, 66], [50, 72, 52], [190, 60, 40], [12, 60, 48], [285, 38, 50], [95, 42, 50]];

/** Hue, saturation and lightness of a member by its number; each further round through the colours is turned. */
function ownerParts(number) {
  const round = Math.floor(number / OWNER_COLOURS.length), [hue, saturation, light] = OWNER_COLOURS[number % OWNER_COLOURS.length];
  return { hue: (hue + round * 47) % 360, saturation, light: light + (round % 3 === 1 ? 12 : round % 3 === 2 ? -10 : 0) };
}

export function ownerColour(number, isDark) {
  const { hue, saturation, light } = ownerParts(number);
  return `hsl(${hue} ${saturation}% ${light + (isDark ? 2 : 0)}%)`;
}

/** An ink that can be read on the colour of a member. */
export function inkOnOwner(number) {
  const { hue, light } = ownerParts(number);
  return light + (hue > 35 && hue < 190 ? 14 : 0) >= 59 ? "#14181d" : "#fff";
}
