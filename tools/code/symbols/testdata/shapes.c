/* int commented(void) { } */
#include <stdio.h>
#include "shapes.h"

#define MAX_SIDES 12
#define SQUARE(x) \
	((x) * (x)) /* int hidden(void) { */
#ifndef API
#define API
#endif

typedef unsigned long size;
typedef int (*visit)(void *arg, int depth);
typedef struct point {
	double x, y;
} point_t, *point_p;
typedef enum { RED, GREEN = 2, BLUE } color;

struct shape {
	const char *name;
	union {
		int i;
		double d;
	} value;
	int (*area)(struct shape *);
};

enum kind {
	KIND_CIRCLE,
	KIND_SQUARE = SQUARE(2),
};

union bits { int i; float f; };

struct forward;
extern int elsewhere;
static int counter = 0;
static const char *names[] = { "int quoted(void) {", "b" };
int first, *second, third[3];
struct shape unit = { .name = "unit" };
static struct shape *head;

static int prototype(int a, char b);
int main(int argc, char **argv)
{
	int local = 0;
	if (argc > 1) {
		local = '{';
	}
	for (int i = 0; i < local; i++) { printf("}\n"); }
	return 0;
}

static inline struct shape *
make_shape(const char *name, int (*area)(struct shape *))
{
	return NULL;
}

API void draw(struct shape *s) {
	switch (s->value.i) {
	case 1: { break; }
	default: break;
	}
}

#ifdef BIG
int area(struct shape *s, long n) {
	if (n) {
#else
int area(struct shape *s) {
	if (s) {
#endif
		return 1;
	}
	return 0;
}

__attribute__((noreturn)) void die(const char *fmt, ...) { for (;;) {} }

unsigned long long hash(const unsigned char *s)
{
	return 0;
}

const struct shape *
find(
	const char *name)
{
	return 0;
}
