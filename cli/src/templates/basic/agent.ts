/** Greets a person, and doubles a number. */
export default function agent({ name, count }: { name: string, count: number }) {
  const twice = count * 2
  const size = twice > 10 ? 'large' : 'small'
  return { greeting: `Hello, ${name}: ${twice} is a ${size} number.`, twice }
}
