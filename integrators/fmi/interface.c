/* The functions of FMI 3.0, for model exchange and co-simulation.
 *
 * Value references: 0 time, then states, derivatives, parameters and inputs, outputs, event indicators.
 */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT Status fmi3SetDebugLogging(Model *m, bool on, size_t n, const char *const c[])
{ (void)m; (void)on; (void)n; (void)c; return OK; }

EXPORT Model *fmi3InstantiateModelExchange(const char *name, const char *token, const char *path,
    bool visible, bool logging, void *environment, Logger log)
{
    (void)name; (void)path; (void)visible; (void)logging;
    Model *m = create(token, environment, log);
    if (m) m->event_mode = true;
    return m;
}
EXPORT Model *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path,
    bool visible, bool logging, bool events, bool early, const Reference inside[], size_t n,
    void *environment, Logger log, void *update)
{
    (void)name; (void)path; (void)visible; (void)logging; (void)inside; (void)n; (void)update;
    Model *m = create(token, environment, log);
    if (m) { m->event_mode = events; m->early = early; }
    return m;
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
#if E > 0
    begin_events(m);
    if (!m->event_mode) return act(m, &(bool){false}, &(bool){false});
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
#if E > 0
        else if (k <= 2 * N + K + M + E) {
            double z[E];
            indicators(m, z);
            v[i] = z[k - 1 - 2 * N - K - M];
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
EXPORT Status fmi3GetNumberOfEventIndicators(Model *m, size_t *n) { (void)m; *n = E; return OK; }
EXPORT Status fmi3GetEventIndicators(Model *m, double z[], size_t n)
{
    (void)z;
    if (n != E) return complain(m, "wrong number of event indicators");
#if E > 0
    indicators(m, z);
#endif
    return OK;
}
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
#if E > 0
    note_sides(m, false);
    m->window = RTOL * fabs(m->t - m->last_step);
    m->last_step = m->t;
#endif
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
#if E > 0
    Status status = act(m, changed, end);
    if (status != OK) return status;
#endif
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
    Status status = m->ended ? OK : advance(m, t + h);
    *last = m->t;
    *end = m->ended;
#if E > 0
    *event = m->event_mode && m->found >= 0;
    *early = m->early && m->t < t + h;
#endif
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
