/* Steps of co-simulation: the pair of Dormand and Prince (1980) of orders 5 and 4, with steps of its own
 * between the times of communication, which end at events.
 */
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

#if E > 0
/* Weights of the last term of its dense output of order 4 (Hairer, Norsett and Wanner, 1993). */
static const double D5[7] = {-12715105075.0 / 11282082432, 0, 87487479700.0 / 32700410799,
                             -10690763975.0 / 1880347072, 701980252875.0 / 199316789632,
                             -1453857185.0 / 822651844, 69997945.0 / 29380423};
static const double EVENLY[5] = {0, 0.25, 0.5, 0.75, 1};
/* A step that starts on a surface may return to it very soon. */
static const double FROM_ZERO[10] = {0, 1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.5, 0.75, 1};

typedef struct { const Model *m; const double *y, *k; double h; } Step;  /* from m->y to y */

static void within(const Step *step, double theta, double *x)
{
    const double (*k)[N + 1] = (const double (*)[N + 1])step->k;
    for (int i = 0; i < N; i++) {
        double rise = step->y[i] - step->m->y[i], first = step->h * k[0][i] - rise, fourth = 0.0;
        double third = rise - step->h * k[6][i] - first;
        for (int j = 0; j < 7; j++) fourth += step->h * D5[j] * k[j][i];
        double inner = first + theta * (third + (1 - theta) * fourth);
        x[i] = step->m->y[i] + theta * (rise + (1 - theta) * inner);
    }
}

static double event_at(const Step *step, int e, double theta)
{
    double x[N + 1], g[E];
    within(step, theta, x);
    model_events(step->m->t + theta * step->h, x, step->m->p, g);
    return g[e];
}

/* Add a node between two others where g, of one sign at them, has the other sign. */
static int add_dip(const Step *step, int e, double *at, double *g, int n, int left, int right)
{
    double a = at[left], b = at[right], middle = 0.0, value = 0.0;
    int s = sign_of(g[left]);
    for (int i = 0; i < 50; i++) {
        double x = a + 0.382 * (b - a), z = a + 0.618 * (b - a);
        double at_x = s * event_at(step, e, x), at_z = s * event_at(step, e, z);
        middle = at_x < at_z ? x : z;
        value = fmin(at_x, at_z);
        if (value <= 0) break;
        if (at_x < at_z) b = z;
        else a = x;
    }
    if (value > 0) return n;
    int place = n;
    for (; at[place - 1] > middle; place--) { at[place] = at[place - 1]; g[place] = g[place - 1]; }
    at[place] = middle;
    g[place] = s * value;
    return n + 1;
}

/* Values of an event at nodes of a step, dips below zero between them included. */
static int sample(const Step *step, int e, double at[16], double g[16])
{
    bool from_zero = !step->m->away[e];
    int n = from_zero ? 10 : 5;
    double least = INFINITY, most = 0.0;
    for (int i = 0; i < n; i++) {
        at[i] = from_zero ? FROM_ZERO[i] : EVENLY[i];
        g[i] = event_at(step, e, at[i]);
        least = fmin(least, fabs(g[i]));
        most = fmax(most, fabs(g[i]));
        if (g[i] * g[0] < 0) least = -1.0;
    }
    if (least > 100 * (most - least)) return n;
    if (!from_zero && least > 0) {  /* towards zero at once, yet further from it at the next node */
        double early = -25 * g[0] + 48 * g[1] - 36 * g[2] + 16 * g[3] - 3 * g[4];
        double late = -25 * g[4] + 48 * g[3] - 36 * g[2] + 16 * g[1] - 3 * g[0];
        if (fabs(g[3]) >= fabs(g[4]) && late * g[4] < 0) n = add_dip(step, e, at, g, n, 3, 4);
        if (fabs(g[0]) <= fabs(g[1]) && early * g[0] < 0) n = add_dip(step, e, at, g, n, 0, 1);
    }
    for (int i = 1; i + 1 < n && n < 16; i++)
        if (g[i] * g[i - 1] > 0 && g[i] * g[i + 1] > 0 && fabs(g[i]) <= fmin(fabs(g[i - 1]), fabs(g[i + 1])))
            n = add_dip(step, e, at, g, n, i - 1, i + 1);
    return n;
}

/* The first event in a step, and when, in parts of it; -1: none. */
static int first_event(const Step *step, double *when)
{
    int found = -1;
    for (int e = 0; e < E; e++) {
        double at[16], g[16], slack = step->m->slack[e];
        int n = sample(step, e, at, g), s = step->m->side[e];
        bool away = step->m->away[e];
        for (int i = 1; i < n && at[i - 1] < *when; i++) {
            if (s * g[i] > 0) { away = true; continue; }
            if (!away && s * g[i] >= -slack) continue;
            if (DIRECTION[e] == s) { s = -s; away = g[i] != 0; slack = 0.0; continue; }
            double before = at[i - 1], after = at[i];
            for (int round = 0; round < 60; round++) {
                double middle = 0.5 * (before + after), inside = s * event_at(step, e, middle);
                if (away ? inside <= 0 : inside < -slack) after = middle;
                else before = middle;
            }
            if (after < *when || found < 0) { *when = after; found = e; }
            break;
        }
    }
    return found;
}
#endif

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
            double part = 1.0;
#if E > 0
            Step step = {m, y, k[0], h};
            m->found = first_event(&step, &part);
            if (m->found >= 0) {
                within(&step, part, e);
                memcpy(y, e, N * sizeof(double));
            }
#endif
            m->t = last && part == 1.0 ? end : m->t + part * h;
            memcpy(m->y, y, N * sizeof(double));
            if (!last || factor < 1.0) m->h = h * factor;
            else if (h * factor > m->h) m->h = h * factor;
#if PROJECTS
            if (!project(m, y)) return complain(m, LOST);
            memcpy(m->y, y, N * sizeof(double));
#endif
#if E > 0
            note_sides(m, false);
            if (m->found >= 0) {
                m->window = RTOL * h;
                if (m->event_mode && m->early) return OK;
                Status status = act(m, &(bool){false}, &(bool){false});
                if (status != OK || m->ended) return status;
            }
#endif
#if PROJECTS || E > 0
            model_f(m->t, m->y, m->p, k[0]);
#else
            memcpy(k[0], k[6], N * sizeof(double));
#endif
        } else {
            m->h = h * fmin(factor, 1.0);
            if (m->h <= tiny / 16) return complain(m, "the step became too small: a singularity?");
        }
    }
    m->t = end;
    return OK;
}
