/** Totals the lines of an order. */
export default function agent({ lines, rate = 0.25 }: { lines: Line[], rate?: number }) {
  const net = lines.map(amount).reduce((sum, amount) => sum + amount, 0)
  const largest = lines.toSorted((a, b) => amount(b) - amount(a))[0]?.name ?? null
  return { net: round(net), gross: round(net * (1 + rate)), largest }
}

interface Line { name: string, price: number, count: number }

function amount({ price, count }: Line) {
  return price * count
}

function round(value: number) {
  return Math.round(value * 100) / 100
}
