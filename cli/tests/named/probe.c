/* A dynamic program of musl for the test of its images. It is compiled without headers, which
   Debian has in a package with a whole compiler, so it declares what it calls. */
typedef struct file FILE;
struct passwd {
  char *name;
};
int __libc_start_main(int (*)(int, char **), int, char **, void (*)(void), void (*)(void),
                      void (*)(void));
int printf(const char *, ...);
int fflush(FILE *);
FILE *fopen(const char *, const char *);
int fputs(const char *, FILE *);
int fclose(FILE *);
char *getenv(const char *);
char *getcwd(char *, unsigned long);
unsigned getuid(void);
unsigned getgid(void);
struct passwd *getpwuid(unsigned);
int fork(void);
int execvp(const char *, char *const *);
int waitpid(int, int *, int);
int pthread_create(unsigned long *, void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
double sqrt(double);

static int counter;

static void *count(void *unused) {
  for (int i = 0; i < 10000; i++) __sync_fetch_and_add(&counter, 1);
  return unused;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    printf("child %s %.3f\n", argv[1], sqrt(2 * argc));
    return 7;
  }
  char folder[256];
  struct passwd *user = getpwuid(getuid());
  printf("%u %u %s %s %s\n", getuid(), getgid(), user ? user->name : "nobody",
         getcwd(folder, sizeof folder), getenv("COLOR"));
  unsigned long threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  FILE *file = fopen("file", "w");
  int written = file && fputs("x", file) >= 0 && fclose(file) == 0;
  printf("%d %s\n", counter, written ? "written" : "not written");
  fflush(0);
  char *again[] = {"program", "again", 0};
  int child = fork(), status = 0;
  if (child == 0) return execvp(again[0], again);
  waitpid(child, &status, 0);
  printf("status %d\n", status >> 8);
  return 0;
}

__asm__(".globl _start\n_start: mv a0, sp\nandi sp, sp, -16\ntail start");

void start(long *stack) {
  __libc_start_main(main, *stack, (char **)(stack + 1), 0, 0, 0);
}
