/* A model and its state: what events, steps and the interface work on.
 *
 * Before this text stand the numbers N (states), K (parameters and inputs), M (outputs), E (events),
 * PROJECTS, CLOSES, SETTLED, TOO_LARGE, TOKEN, START[N + K], SPAN (length of the usual run), RTOL,
 * ATOL[N], and the functions model_f, model_g (if M > 0), model_project (if PROJECTS) and model_close
 * (if CLOSES, which says how often at most). After it stand events.c (if E > 0), steps.c and interface.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef uint32_t Reference;
typedef void (*Logger)(void *, Status, const char *, const char *);

typedef struct {
    double t, h, y[N + 1], p[K + 1];
    bool event_mode, early;  /* what the other program does in co-simulation */
    bool ended;              /* an event has ended the run */
#if E > 0
    int side[E], found;  /* of its surface; the event at which a step ended, or -1 */
    bool away[E];
    long count[E], resets;
    double slack[E], window, began, last_reset, last_step;
#endif
    void *environment;
    Logger log;
} Model;

static Status complain(Model *m, const char *text)
{
    if (m && m->log) m->log(m->environment, ERROR, "logStatusError", text);
    return ERROR;
}

static void begin(Model *m)
{
    m->t = 0.0;
    m->h = 0.0;
    m->ended = false;
    for (int i = 0; i < N; i++) m->y[i] = START[i];
    for (int i = 0; i < K; i++) m->p[i] = START[N + i];
}

static Model *create(const char *token, void *environment, Logger log)
{
    if (!token || strcmp(token, TOKEN) != 0) return NULL;
    Model *m = calloc(1, sizeof(Model));
    if (!m) return NULL;
    m->environment = environment;
    m->log = log;
    begin(m);
    return m;
}

static bool finite_all(const double *x, int n)
{
    for (int i = 0; i < n; i++) if (!isfinite(x[i])) return false;
    return true;
}

/* ---------------------------------------------------------------- back to the constraints */

/* Off by more than this part of the tolerance, the state is brought back. */
#define OFF (0.1 * RTOL)

#if PROJECTS
/* Put the projected state into y; false if that does not succeed. */
static bool project(const Model *m, double *y)
{
    double x[N + 2];
    memcpy(x, m->y, N * sizeof(double));
#if CLOSES
    double closed[N + 1], size = 1.0;
    for (int k = 0; size > SETTLED; k++) {
        if (k == CLOSES) return false;
        model_close(m->t, x, m->p, closed);
        size = closed[N];
        if (!(size <= TOO_LARGE)) return false;
        memcpy(x, closed, N * sizeof(double));
    }
#endif
    model_project(m->t, x, m->p, y);
    return finite_all(y, N);
}

static bool far_from(const Model *m, const double *y)
{
    for (int i = 0; i < N; i++) if (fabs(y[i] - m->y[i]) > OFF * (1 + fabs(y[i]))) return true;
    return false;
}

static const char LOST[] = "the state cannot be brought to where its constraints hold";
#endif
