/* The functions of FMI 3.0 around a right-hand side, for model exchange and co-simulation.
 *
 * Before this text stand the numbers N (states), K (parameters and inputs), M (outputs), PROJECTS,
 * CLOSES, SETTLED, TOO_LARGE, TOKEN, START[N + K], RTOL, ATOL[N], and the functions model_f, model_g
 * (if M > 0), model_project (if PROJECTS) and model_close (if CLOSES, which says how often at most).
 * Value references: 0 time, then states, derivatives, parameters and inputs, outputs.
 *
 * Co-simulation steps by the pair of Dormand and Prince (1980) of orders 5 and 4, with steps of its
 * own between the times of communication.
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

/* ---------------------------------------------------------------- steps of co-simulation */

static const double C5[7] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
static const double A5[7][6] = {
    {0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double E5[7] = {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200,
                             22.0 / 525, -1.0 / 40};

static double scaled(const double *e, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < N; i++) {
        double s = ATOL[i] + RTOL * fmax(fabs(a[i]), fabs(b[i]));
        sum += (e[i] / s) * (e[i] / s);
    }
    return sqrt(sum / (N > 0 ? N : 1));
}

static Status advance(Model *m, double end)
{
    double k[7][N + 1], y[N + 1], e[N + 1];
    double span = end - m->t, tiny = 16 * 2.2204460492503131e-16 * fmax(fabs(m->t), fabs(end));
    long steps = 0;
    if (!(span >= 0.0) || !isfinite(span)) return complain(m, "expected a step forward in time");
    if (N == 0) { m->t = end; return OK; }
    model_f(m->t, m->y, m->p, k[0]);
    if (!finite_all(k[0], N)) return complain(m, "the derivatives are not finite");
    if (m->h <= 0.0) {
        double slope = scaled(k[0], m->y, m->y);
        m->h = slope > 1e-10 ? 0.01 / slope : 1e-3 * (span > 0 ? span : 1.0);
    }
    while (end - m->t > tiny) {
        double left = end - m->t, h = m->h;
        bool last = h >= left * (1 - 1e-12);
        if (last) h = left;
        if (++steps > 10000000L) return complain(m, "ten million steps within one step");
        for (int s = 1; s < 7; s++) {
            for (int i = 0; i < N; i++) {
                double sum = 0.0;
                for (int j = 0; j < s; j++) sum += A5[s][j] * k[j][i];
                y[i] = m->y[i] + h * sum;
            }
            model_f(m->t + C5[s] * h, y, m->p, k[s]);
        }
        for (int i = 0; i < N; i++) {
            double sum = 0.0;
            for (int j = 0; j < 7; j++) sum += E5[j] * k[j][i];
            e[i] = h * sum;
        }
        double error = scaled(e, m->y, y);
        if (!isfinite(error) || !finite_all(y, N)) error = 1e10;
        double factor = 0.9 * pow(fmax(error, 1e-10), -0.2);
        factor = fmin(5.0, fmax(0.2, factor));
        if (error <= 1.0) {
            m->t = last ? end : m->t + h;
            memcpy(m->y, y, N * sizeof(double));
#if PROJECTS
            if (!project(m, y)) return complain(m, LOST);
            memcpy(m->y, y, N * sizeof(double));
            model_f(m->t, m->y, m->p, k[0]);
#else
            memcpy(k[0], k[6], N * sizeof(double));
#endif
            if (!last || factor < 1.0) m->h = h * factor;
            else if (h * factor > m->h) m->h = h * factor;
        } else {
            m->h = h * fmin(factor, 1.0);
            if (m->h <= tiny / 16) return complain(m, "the step became too small: a singularity?");
        }
    }
    m->t = end;
    return OK;
}

/* ---------------------------------------------------------------- the interface */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT Status fmi3SetDebugLogging(Model *m, bool on, size_t n, const char *const c[])
{ (void)m; (void)on; (void)n; (void)c; return OK; }

EXPORT Model *fmi3InstantiateModelExchange(const char *name, const char *token, const char *path,
    bool visible, bool logging, void *environment, Logger log)
{
    (void)name; (void)path; (void)visible; (void)logging;
    return create(token, environment, log);
}
EXPORT Model *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path,
    bool visible, bool logging, bool events, bool early, const Reference inside[], size_t n,
    void *environment, Logger log, void *update)
{
    (void)name; (void)path; (void)visible; (void)logging; (void)events; (void)early; (void)inside;
    (void)n; (void)update;
    return create(token, environment, log);
}
EXPORT Model *fmi3InstantiateScheduledExecution(void) { return NULL; }
EXPORT void fmi3FreeInstance(Model *m) { free(m); }

EXPORT Status fmi3EnterInitializationMode(Model *m, bool defined, double tolerance, double start,
    bool ends, double stop)
{
    (void)defined; (void)tolerance; (void)ends; (void)stop;
    m->t = start;
    m->h = 0.0;
    return OK;
}
EXPORT Status fmi3ExitInitializationMode(Model *m)
{
    (void)m;
#if PROJECTS  /* the start, or a parameter, may have been set */
    double y[N + 1];
    if (!project(m, y)) return complain(m, LOST);
    if (far_from(m, y)) memcpy(m->y, y, N * sizeof(double));
#endif
    return OK;
}
EXPORT Status fmi3EnterEventMode(Model *m) { (void)m; return OK; }
EXPORT Status fmi3EnterStepMode(Model *m) { (void)m; return OK; }
EXPORT Status fmi3EnterContinuousTimeMode(Model *m) { (void)m; return OK; }
EXPORT Status fmi3EnterConfigurationMode(Model *m) { (void)m; return OK; }
EXPORT Status fmi3ExitConfigurationMode(Model *m) { (void)m; return OK; }
EXPORT Status fmi3Terminate(Model *m) { (void)m; return OK; }
EXPORT Status fmi3Reset(Model *m) { begin(m); return OK; }

EXPORT Status fmi3GetFloat64(Model *m, const Reference r[], size_t n, double v[], size_t nv)
{
    double slope[N + 1], out[M + 1];
    bool known_f = false, known_g = false;
    (void)out; (void)known_g;
    if (n != nv) return complain(m, "expected as many values as references");
    for (size_t i = 0; i < n; i++) {
        Reference k = r[i];
        if (k == 0) v[i] = m->t;
        else if (k <= N) v[i] = m->y[k - 1];
        else if (k <= 2 * N) {
            if (!known_f) model_f(m->t, m->y, m->p, slope);
            known_f = true;
            v[i] = slope[k - 1 - N];
        } else if (k <= 2 * N + K) v[i] = m->p[k - 1 - 2 * N];
#if M > 0
        else if (k <= 2 * N + K + M) {
            if (!known_g) model_g(m->t, m->y, m->p, out);
            known_g = true;
            v[i] = out[k - 1 - 2 * N - K];
        }
#endif
        else return complain(m, "there is no such variable");
    }
    return OK;
}

EXPORT Status fmi3SetFloat64(Model *m, const Reference r[], size_t n, const double v[], size_t nv)
{
    if (n != nv) return complain(m, "expected as many values as references");
    for (size_t i = 0; i < n; i++) {
        Reference k = r[i];
        if (!isfinite(v[i])) return complain(m, "expected finite values");
        if (k >= 1 && k <= N) m->y[k - 1] = v[i];
        else if (k > 2 * N && k <= 2 * N + K) m->p[k - 1 - 2 * N] = v[i];
        else return complain(m, "this variable cannot be set");
    }
    return OK;
}

EXPORT Status fmi3SetTime(Model *m, double t) { m->t = t; return OK; }
EXPORT Status fmi3GetNumberOfContinuousStates(Model *m, size_t *n) { (void)m; *n = N; return OK; }
EXPORT Status fmi3GetNumberOfEventIndicators(Model *m, size_t *n) { (void)m; *n = 0; return OK; }
EXPORT Status fmi3GetEventIndicators(Model *m, double z[], size_t n)
{ (void)m; (void)z; return n == 0 ? OK : ERROR; }
EXPORT Status fmi3GetContinuousStates(Model *m, double y[], size_t n)
{
    if (n != N) return complain(m, "wrong number of states");
    memcpy(y, m->y, N * sizeof(double));
    return OK;
}
EXPORT Status fmi3SetContinuousStates(Model *m, const double y[], size_t n)
{
    if (n != N) return complain(m, "wrong number of states");
    memcpy(m->y, y, N * sizeof(double));
    return OK;
}
EXPORT Status fmi3GetContinuousStateDerivatives(Model *m, double slope[], size_t n)
{
    if (n != N) return complain(m, "wrong number of states");
    model_f(m->t, m->y, m->p, slope);
    return finite_all(slope, N) ? OK : DISCARD;
}
EXPORT Status fmi3GetNominalsOfContinuousStates(Model *m, double x[], size_t n)
{
    if (n != N) return complain(m, "wrong number of states");
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    return OK;
}

EXPORT Status fmi3CompletedIntegratorStep(Model *m, bool no_rollback, bool *event, bool *end)
{
    (void)m; (void)no_rollback;
    *event = false;
    *end = false;
#if PROJECTS
    double y[N + 1];
    *event = project(m, y) && far_from(m, y);
#endif
    return OK;
}
EXPORT Status fmi3EvaluateDiscreteStates(Model *m) { (void)m; return OK; }
EXPORT Status fmi3UpdateDiscreteStates(Model *m, bool *again, bool *end, bool *nominals,
    bool *changed, bool *next_defined, double *next)
{
    (void)m;
    *again = *end = *nominals = *changed = *next_defined = false;
    *next = 0.0;
#if PROJECTS
    double y[N + 1];
    if (!project(m, y)) return complain(m, LOST);
    if (far_from(m, y)) {
        memcpy(m->y, y, N * sizeof(double));
        *changed = true;
    }
#endif
    return OK;
}

EXPORT Status fmi3DoStep(Model *m, double t, double h, bool no_set, bool *event, bool *end,
    bool *early, double *last)
{
    (void)no_set;
    *event = *end = *early = false;
    if (fabs(t - m->t) > 1e-9 * (1 + fabs(t))) return complain(m, "the time is not that of the last step");
    Status status = advance(m, t + h);
    *last = m->t;
    return status;
}

/* ---------------------------------------------------------------- states to keep */

EXPORT Status fmi3GetFMUState(Model *m, void **state)
{
    if (!*state) *state = malloc(sizeof(Model));
    if (!*state) return complain(m, "no memory");
    memcpy(*state, m, sizeof(Model));
    return OK;
}
EXPORT Status fmi3SetFMUState(Model *m, const void *state)
{
    Model kept = *m;
    memcpy(m, state, sizeof(Model));
    m->environment = kept.environment;
    m->log = kept.log;
    return OK;
}
EXPORT Status fmi3FreeFMUState(Model *m, void **state)
{ (void)m; free(*state); *state = NULL; return OK; }
EXPORT Status fmi3SerializedFMUStateSize(Model *m, void *state, size_t *n)
{ (void)m; (void)state; *n = sizeof(Model); return OK; }
EXPORT Status fmi3SerializeFMUState(Model *m, void *state, uint8_t bytes[], size_t n)
{
    if (n < sizeof(Model)) return complain(m, "too few bytes");
    memcpy(bytes, state, sizeof(Model));
    return OK;
}
EXPORT Status fmi3DeserializeFMUState(Model *m, const uint8_t bytes[], size_t n, void **state)
{
    if (n != sizeof(Model)) return complain(m, "these bytes are no state");
    *state = malloc(sizeof(Model));
    if (!*state) return complain(m, "no memory");
    memcpy(*state, bytes, sizeof(Model));
    return OK;
}

/* ---------------------------------------------------------------- what this FMU does not have */

#define NONE(name) EXPORT Status name(void) { return ERROR; }
NONE(fmi3GetFloat32) NONE(fmi3GetInt8) NONE(fmi3GetUInt8) NONE(fmi3GetInt16) NONE(fmi3GetUInt16)
NONE(fmi3GetInt32) NONE(fmi3GetUInt32) NONE(fmi3GetInt64) NONE(fmi3GetUInt64) NONE(fmi3GetBoolean)
NONE(fmi3GetString) NONE(fmi3GetBinary) NONE(fmi3GetClock) NONE(fmi3SetFloat32) NONE(fmi3SetInt8)
NONE(fmi3SetUInt8) NONE(fmi3SetInt16) NONE(fmi3SetUInt16) NONE(fmi3SetInt32) NONE(fmi3SetUInt32)
NONE(fmi3SetInt64) NONE(fmi3SetUInt64) NONE(fmi3SetBoolean) NONE(fmi3SetString) NONE(fmi3SetBinary)
NONE(fmi3SetClock) NONE(fmi3GetNumberOfVariableDependencies) NONE(fmi3GetVariableDependencies)
NONE(fmi3GetDirectionalDerivative) NONE(fmi3GetAdjointDerivative) NONE(fmi3GetIntervalDecimal)
NONE(fmi3GetIntervalFraction) NONE(fmi3GetShiftDecimal) NONE(fmi3GetShiftFraction)
NONE(fmi3SetIntervalDecimal) NONE(fmi3SetIntervalFraction) NONE(fmi3SetShiftDecimal)
NONE(fmi3SetShiftFraction) NONE(fmi3GetOutputDerivatives) NONE(fmi3ActivateModelPartition)
