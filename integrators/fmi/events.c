/* Events: zeros of model_events along the motion, and what happens at them.
 *
 * Before this text stand DIRECTION[E] (+1, -1, 0), TERMINAL[E] (at which occurrence the run ends; 0:
 * at none), RESETS[E], and the functions model_events (E numbers g), model_events_along (their
 * derivative in a direction, which follows the parameters), model_events_drift (their derivative by
 * time) and model_reset (the state after event k).
 *
 * Each event remembers the side of its surface g = 0 that the motion is on. After an event the state
 * is on the surface but for rounding: then the side is where the motion leads, by the sign of g's
 * rate, or of the rate's rate. It counts as reached once g has been seen there (`away`).
 */
#define ROUNDING 3.6e-15
#define MOST_ROUNDS 1000
#define ZENO_GAP 1e-9
#define ZENO_COUNT 8

typedef struct { double g, rate, rounding; int heading; } Seen;

static int sign_of(double x) { return (x > 0) - (x < 0); }

/* Rates of all events, how far rounding may put them off, and what it may leave of g itself. */
static void rates(const Model *m, double t, const double *y, double rate[], double doubt[], double blur[])
{
    double f[N + 1], given[K + N + 1], column[E];
    memcpy(given, m->p, K * sizeof(double));
    model_f(t, y, m->p, f);
    model_events_drift(t, y, m->p, rate);
    for (int k = 0; k < E; k++) { doubt[k] = fabs(rate[k]); blur[k] = 0.0; }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) given[K + j] = j == i ? 1.0 : 0.0;
        model_events_along(t, y, given, column);
        for (int k = 0; k < E; k++) {
            rate[k] += column[k] * f[i];
            doubt[k] += fabs(column[k] * f[i]);
            blur[k] += fabs(column[k] * y[i]);
        }
    }
    for (int k = 0; k < E; k++) {
        doubt[k] *= ROUNDING;
        blur[k] = ROUNDING * fmax(blur[k], fabs(rate[k]) * fmax(fabs(t), SPAN));
    }
}

/* The events as the motion meets them here: values, rates, and where g goes from zero. */
static void look(const Model *m, Seen seen[])
{
    double f[N + 1], y[N + 1], g[E], rate[E], doubt[E], blur[E], later[E], more[E], unused[E];
    double size = 0.0, speed = 0.0;
    model_events(m->t, m->y, m->p, g);
    rates(m, m->t, m->y, rate, doubt, blur);
    model_f(m->t, m->y, m->p, f);
    for (int i = 0; i < N; i++) {
        size = fmax(size, fabs(m->y[i]));
        speed = fmax(speed, fabs(f[i]));
    }
    double little = 1e-5 * fmin(size > 0 && speed > 0 ? size / speed : 1e-3 * SPAN, 1e-3 * SPAN);
    for (int i = 0; i < N; i++) y[i] = m->y[i] + little * f[i];
    rates(m, m->t + little, y, later, more, unused);
    for (int k = 0; k < E; k++) {
        double change = later[k] - rate[k];
        bool turns = fabs(change) > doubt[k] + more[k];
        if (fabs(rate[k]) <= doubt[k]) rate[k] = 0.0;
        int heading = rate[k] != 0 ? sign_of(rate[k]) : turns ? sign_of(change) : 0;
        seen[k] = (Seen){g[k], rate[k], blur[k], heading};
    }
}

/* At the start of a run: on which side of each event it begins. */
static void begin_events(Model *m)
{
    Seen seen[E];
    m->resets = 0;
    m->last_reset = m->began = m->t;
    m->window = 0.0;
    m->last_step = m->t;
    m->found = -1;
    look(m, seen);
    for (int k = 0; k < E; k++) {
        m->count[k] = 0;
        m->side[k] = sign_of(seen[k].g);
        m->away[k] = fabs(seen[k].g) > seen[k].rounding;
        m->slack[k] = m->away[k] ? 0.0 : seen[k].rounding;
        if (m->away[k]) continue;
        m->side[k] = seen[k].heading ? seen[k].heading : DIRECTION[k] ? -DIRECTION[k] : 1;
        if (RESETS[k] && DIRECTION[k] && seen[k].heading == DIRECTION[k]) {
            m->side[k] = -DIRECTION[k];  /* the motion leads into the surface: this counts */
            m->away[k] = true;
        }
    }
}

static bool wanted(const Model *m, int k) { return DIRECTION[k] != m->side[k]; }

/* Note where the motion has got to: away from a surface, or through it in the sense not wanted; with
 * `all`, in any sense.
 */
static void note_sides(Model *m, bool all)
{
    double g[E];
    model_events(m->t, m->y, m->p, g);
    for (int k = 0; k < E; k++) {
        double inside = m->side[k] * g[k];
        if (inside < -m->slack[k] && (all || !wanted(m, k))) m->side[k] = -m->side[k];
        else if (inside <= 0) continue;
        m->away[k] = true;
        m->slack[k] = 0.0;
    }
}

/* What other programs watch for changes of sign: g, but on its side where only rounding says no. */
static void indicators(const Model *m, double z[])
{
    model_events(m->t, m->y, m->p, z);
    for (int k = 0; k < E; k++)
        if (!m->away[k] && m->side[k] * z[k] <= 0 && fabs(z[k]) <= m->slack[k])
            z[k] = m->side[k] * fmax(fabs(z[k]), 2.3e-308);
}

/* What has come about at one instant: whether a reset has changed the state, and for each event whether
 * it was due before that, has happened, or was passed through by the motion after its reset.
 */
typedef struct { bool changed, before[E], happened[E], through[E]; } Instant;

/* Whether event k is to happen now. Resets of others make it happen where they turn the motion into its
 * surface, or carry g across in its direction.
 */
static bool is_due(const Model *m, int k, const Seen *seen, const Instant *now)
{
    int s = m->side[k];
    double inside = s * seen[k].g, near = fmax(m->slack[k], fabs(seen[k].rate) * m->window);
    bool enters = fabs(inside) <= near && seen[k].heading == -s;
    bool beyond = m->away[k] ? inside < 0 || (inside <= 0 && seen[k].heading != s) : inside < -m->slack[k];
    if (!wanted(m, k)) return false;
    if (!now->changed) return beyond || (m->away[k] && enters);
    bool first = !now->happened[k], known = DIRECTION[k] || now->before[k];
    if (now->through[k] || !known || (!RESETS[k] && !first)) return false;
    if (enters) return RESETS[k] || TERMINAL[k] || now->before[k];
    return beyond && first && (RESETS[k] || now->before[k]);
}

/* Let happen what is due at m->t; m->found was located there. NULL, or why the run cannot go on. */
static const char *happen(Model *m, bool *changed, bool *ended)
{
    Seen seen[E], after[E];
    double y[N + 1];
    Instant now = {false};
    bool due = true;
    int found = m->found;
    m->found = -1;
    look(m, seen);
    for (int k = 0; k < E; k++) now.before[k] = k == found || is_due(m, k, seen, &now);
    for (int round = 0; due && !*ended; round++) {
        if (round == MOST_ROUNDS) return "the events of one instant do not come to an end";
        due = false;
        for (int k = 0; k < E; k++) {
            if (k != found && !is_due(m, k, seen, &now)) continue;
            if (k == found) found = -1;
            int s = m->side[k];
            due = now.happened[k] = true;
            m->count[k]++;
            if (TERMINAL[k] && m->count[k] >= TERMINAL[k]) *ended = true;
            bool same = true, jumps = RESETS[k] && !*ended;
            if (jumps) {
                model_reset(k, m->t, m->y, m->p, y);
                if (!finite_all(y, N)) return "the state after an event is not finite";
                same = memcmp(y, m->y, N * sizeof(double)) == 0;
                now.changed = now.changed || !same;
                memcpy(m->y, y, N * sizeof(double));
            }
            look(m, after);
            m->slack[k] = 4 * fmax(fabs(after[k].g), jumps && !same ? 0.0 : fabs(seen[k].g));
            double near = now.before[k] ? 4 * fabs(seen[k].g) : 0.0;  /* others may come from anywhere */
            near = fmax(fmax(near, fabs(after[k].rate) * m->window), after[k].rounding);
            m->away[k] = fabs(after[k].g) > near;
            if (m->away[k]) {
                m->side[k] = sign_of(after[k].g);
                m->slack[k] = 0.0;
            } else if (!jumps) m->side[k] = -s;
            else if (after[k].heading == -s) {
                if (after[k].rate == 0 && same)
                    return "an event holds the state on its surface: its reset changes nothing any more";
                if (after[k].rate * seen[k].rate > 0) {
                    now.through[k] = true;
                    m->side[k] = -s;
                }
            }
            memcpy(seen, after, sizeof seen);
            if (*ended) break;
        }
    }
    *changed = now.changed;
    if (now.changed) {
        m->resets = m->t - m->last_reset <= ZENO_GAP * (m->t - m->began) ? m->resets + 1 : 0;
        m->last_reset = m->t;
        if (m->resets >= ZENO_COUNT) return "events accumulate: resets are ever closer together (Zeno)";
    }
    m->ended = m->ended || *ended;
    note_sides(m, true);
    return NULL;
}

/* The same, with a message where it fails; a state that has changed is brought to its constraints. */
static Status act(Model *m, bool *changed, bool *ended)
{
    const char *why = happen(m, changed, ended);
    if (why) return complain(m, why);
#if PROJECTS
    double y[N + 1];
    if (*changed && !project(m, y)) return complain(m, LOST);
    if (*changed) memcpy(m->y, y, N * sizeof(double));
#endif
    return OK;
}
