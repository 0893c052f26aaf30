/* The machine code of the kernels as a module of Python.

A kernel is a native function that Numba has compiled. It takes each array as seven or more numbers: the memory that it
owns (none: the caller keeps it alive), items, bytes of an item, address, lengths and steps. `building.py` writes one
function for each line of `signatures.txt` that passes such numbers on, and the text by which its arguments are checked:

    R2f8  an array that is read: 2 axes, floating-point numbers of 8 bytes      Si8      a number
    W1u1  an array that is written to as well                                   ( … )    a tuple

No address is touched before all arguments of a call have been found to be those of one line. An array has to be
aligned, in the byte order of the machine and C-contiguous, and if it is written to, writable. Otherwise the call ends
in `NoSignature`, and Python makes the array so (`compiling.py`).
*/
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 4, MOST_ARRAYS = 32, MOST_NUMBERS = 16, MOST_WORDS = 64 };

/* --- What the machine code calls: memory with a count of its users, as Numba lays it out --- */

typedef struct {
    size_t users;
    void (*destructor)(void *, size_t, void *);
    void *information, *data;
    size_t size;
    void *external;
} Memory;

Memory *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment) {
    if (size > SIZE_MAX / 2) return NULL;
    Memory *memory = malloc(sizeof(Memory) + size + alignment);
    if (!memory) return NULL;
    uintptr_t data = (uintptr_t)(memory + 1);
    if (alignment) data = (data + alignment - 1) / alignment * alignment;
    *memory = (Memory){1, NULL, NULL, (void *)data, size, NULL};
    return memory;
}

static void free_apart(void *data, size_t size, void *of_items) {
    if (of_items) ((void (*)(void *, size_t, void *))of_items)(data, size, NULL);
    free(data);
}

/* Memory apart from its count, of a list */
Memory *NRT_MemInfo_new_varsize_dtor(size_t size, void *of_items) {
    void *data = malloc(size);
    Memory *memory = data ? malloc(sizeof(Memory)) : NULL;
    if (!memory) {
        free(data);
        return NULL;
    }
    *memory = (Memory){1, free_apart, of_items, data, size, NULL};
    return memory;
}

void NRT_MemInfo_call_dtor(Memory *memory) {
    if (memory->destructor) memory->destructor(memory->data, memory->size, memory->information);
    free(memory);
}

static void release(Memory *memory) {
    if (memory && --memory->users == 0) NRT_MemInfo_call_dtor(memory); /* no other thread knows it */
}

/* Numba's reshape of an array that is contiguous, as all of ours are: 0 if it is not */
int numba_attempt_nocopy_reshape(npy_intp n, const npy_intp *lengths, const npy_intp *steps, npy_intp n_new,
                                 const npy_intp *new_lengths, npy_intp *new_steps, npy_intp item, int is_fortran) {
    npy_intp step = item, size = 1, new_size = 1;
    for (npy_intp i = n - 1; i >= 0; i--) {
        if (lengths[i] != 1 && steps[i] != step) return 0;
        step *= lengths[i];
        size *= lengths[i];
    }
    for (npy_intp i = 0; i < n_new; i++) new_size *= new_lengths[i];
    if (size != new_size || is_fortran) return 0;
    step = item;
    for (npy_intp i = n_new - 1; i >= 0; i--) {
        new_steps[i] = step;
        step *= new_lengths[i];
    }
    return 1;
}

/* --- Arguments --- */

typedef struct {
    npy_intp size, item;
    void *data;
    npy_intp length[MOST_AXES], step[MOST_AXES];
} Array;

typedef union {
    int64_t i;
    uint64_t u;
    double f;
    int8_t b;
} Number;

typedef struct {
    int n_arrays, n_numbers;
    Array array[MOST_ARRAYS];
    Number number[MOST_NUMBERS];
} Arguments;

static int take_array(int is_written, int n_axes, char kind, int item, PyObject *given, Arguments *to) {
    if (!PyArray_Check(given) || to->n_arrays == MOST_ARRAYS) return 0;
    PyArrayObject *array = (PyArrayObject *)given;
    PyArray_Descr *type = PyArray_DESCR(array);
    if (PyArray_NDIM(array) != n_axes || type->kind != kind || PyDataType_ELSIZE(type) != item) return 0;
    if (!PyArray_ISCARRAY_RO(array)) return 0; /* contiguous, aligned, in the order of the machine */
    if (is_written && !PyArray_ISWRITEABLE(array)) return 0;
    Array *out = &to->array[to->n_arrays++];
    *out = (Array){PyArray_SIZE(array), item, PyArray_DATA(array), {0}, {0}};
    npy_intp step = item;
    for (int i = n_axes - 1; i >= 0; i--) { /* NumPy's own steps may be anything on axes of length 0 and 1 */
        out->length[i] = PyArray_DIM(array, i);
        out->step[i] = step;
        step *= out->length[i];
    }
    return 1;
}

static int take_number(char kind, PyObject *given, Arguments *to) {
    if (to->n_numbers == MOST_NUMBERS) return 0;
    Number number = {0};
    if (kind == 'b') {
        if (!(PyBool_Check(given) || PyArray_IsScalar(given, Bool))) return 0;
        number.b = (int8_t)(PyObject_IsTrue(given) == 1);
    } else if (kind == 'f') {
        int is_number = PyFloat_Check(given) || PyLong_Check(given);
        if (!(is_number || PyArray_IsScalar(given, Floating) || PyArray_IsScalar(given, Integer))) return 0;
        number.f = PyFloat_AsDouble(given);
    } else {
        if (!(PyLong_Check(given) || PyArray_IsScalar(given, Integer))) return 0;
        PyObject *whole = PyNumber_Index(given);
        if (!whole) return -1;
        if (kind == 'i') number.i = PyLong_AsLongLong(whole);
        else number.u = PyLong_AsUnsignedLongLong(whole);
        Py_DECREF(whole);
    }
    if (PyErr_Occurred()) return -1; /* too large, or complex */
    to->number[to->n_numbers++] = number;
    return 1;
}

/* Take an argument if it is what the text says, and go on in the text. Return 1, 0 if it is not, −1 after an error. */
static int take(const char **text, PyObject *given, Arguments *to) {
    const char *at = *text;
    if (*at == '(') {
        if (!PyTuple_Check(given)) return 0;
        Py_ssize_t n = PyTuple_Size(given), i = 0;
        for (at++; *at != ')'; i++) {
            if (i == n) return 0;
            int taken = take(&at, PyTuple_GetItem(given, i), to);
            if (taken != 1) return taken;
        }
        *text = at + 1;
        return i == n;
    }
    if (*at == 'S') {
        *text = at + 3;
        return take_number(at[1], given, to);
    }
    *text = at + 4;
    return take_array(*at == 'W', at[1] - '0', at[2], at[3] - '0', given, to);
}

/* --- Results, which a kernel writes as words of 8 bytes --- */

static int type_of(char kind, int item) {
    if (kind == 'f') return item == 8 ? NPY_FLOAT64 : NPY_FLOAT32;
    if (kind == 'b') return NPY_BOOL;
    if (kind == 'i') return item == 8 ? NPY_INT64 : item == 4 ? NPY_INT32 : NPY_INT8;
    return item == 8 ? NPY_UINT64 : item == 4 ? NPY_UINT32 : NPY_UINT8;
}

/* Return what the text says of the words, and go on in both. */
static PyObject *give(const char **text, const int64_t **words) {
    const char *at = *text;
    if (*at == '(') {
        int n = 0;
        PyObject *members[8] = {NULL}, *tuple = NULL;
        for (at++; *at != ')'; n++)
            if (!(members[n] = give(&at, words))) goto end;
        *text = at + 1;
        tuple = PyTuple_New(n);
        for (int i = 0; tuple && i < n; i++) PyTuple_SetItem(tuple, i, Py_NewRef(members[i]));
    end:
        for (int i = 0; i < 8; i++) Py_XDECREF(members[i]);
        return tuple;
    }
    if (*at == 'S') {
        const int64_t *word = (*words)++;
        *text = at + 3;
        if (at[1] == 'f') return PyFloat_FromDouble(*(const double *)word);
        return at[1] == 'b' ? PyBool_FromLong(*(const int8_t *)word) : PyLong_FromLongLong(*word);
    }
    /* A copy: the machine code's memory is not NumPy's. Memory, parent, items, bytes of an item, address, lengths … */
    int n_axes = at[1] - '0';
    *text = at + 4;
    Memory *memory = (Memory *)(intptr_t)(*words)[0];
    npy_intp length[MOST_AXES];
    for (int i = 0; i < n_axes; i++) length[i] = (npy_intp)(*words)[5 + i];
    PyObject *array = PyArray_SimpleNew(n_axes, length, type_of(at[2], at[3] - '0'));
    if (array) memcpy(PyArray_DATA((PyArrayObject *)array), (void *)(intptr_t)(*words)[4], PyArray_NBYTES((PyArrayObject *)array));
    release(memory);
    *words += 5 + 2 * n_axes;
    return array;
}

/* --- Calls --- */

typedef struct {
    const char *arguments, *result;
    int32_t (*run)(const Arguments *, void *, void **);
} Signature;

typedef struct {
    const char *name;
    int first, count;
} Kernel;

#include "calls.h" /* of this build: what a processor needs, signatures and kernels */

static PyObject *NoSignature;

static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    const Kernel *kernel = PyCapsule_GetPointer(self, NULL);
    if (!kernel) return NULL;
    Arguments to;
    for (int k = kernel->first; k < kernel->first + kernel->count; k++) {
        const Signature *signature = &signatures[k];
        const char *text = signature->arguments;
        to.n_arrays = to.n_numbers = 0;
        int taken = 1;
        for (Py_ssize_t i = 0; i < n && taken == 1; i++) taken = *text ? take(&text, given[i], &to) : 0;
        if (taken < 0) return NULL;
        if (taken == 0 || *text) continue;
        int64_t words[MOST_WORDS] = {0};
        void *error = NULL;
        int32_t status;
        Py_BEGIN_ALLOW_THREADS
        status = signature->run(&to, words, &error);
        Py_END_ALLOW_THREADS
        if (status != 0 && status != -2) /* loops raise nothing, but memory may be short. −2: None */
            return PyErr_Format(PyExc_MemoryError, "%s could not allocate its arrays", kernel->name);
        if (!*signature->result) return Py_NewRef(Py_None);
        const char *result = signature->result;
        const int64_t *at = words;
        return give(&result, &at);
    }
    return PyErr_Format(NoSignature, "%s has no machine code for arguments of these types", kernel->name);
}

#ifdef NEEDS_X86_64_V3
#include <cpuid.h>

static int has(unsigned word, unsigned bits) { return (word & bits) == bits; }

/* Whether the processor has what level v3 of x86-64 adds, and the system keeps its wide registers. */
static int is_x86_64_v3(void) {
    unsigned a, b, c, d, kept;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C)) return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    if (!has(kept, 6)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, bit_BMI | bit_AVX2 | bit_BMI2)) return 0;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && has(c, bit_LZCNT);
}
#endif

static PyMethodDef method = {"kernel", (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_machine_code", "Kernels as machine code: `kernels` has them by name.", -1, NULL};

PyMODINIT_FUNC PyInit__machine_code(void) {
#ifdef NEEDS_X86_64_V3
    if (!is_x86_64_v3()) {
        PyErr_SetString(PyExc_ImportError, "the machine code needs a processor with AVX2, BMI2 and FMA (x86-64-v3)");
        return NULL;
    }
#endif
    import_array1(NULL);
    PyObject *module = PyModule_Create(&definition), *kernels_by_name = PyDict_New();
    if (!module || !kernels_by_name) return NULL;
    NoSignature = PyErr_NewException("posteriori.kernels.NoSignature", PyExc_TypeError, NULL);
    if (!NoSignature || PyModule_AddObjectRef(module, "NoSignature", NoSignature) < 0) return NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        PyObject *self = PyCapsule_New((void *)&kernels[i], NULL, NULL);
        PyObject *function = self ? PyCFunction_NewEx(&method, self, NULL) : NULL;
        Py_XDECREF(self);
        if (!function || PyDict_SetItemString(kernels_by_name, kernels[i].name, function) < 0) return NULL;
        Py_DECREF(function);
    }
    if (PyModule_AddObjectRef(module, "kernels", kernels_by_name) < 0) return NULL;
    Py_DECREF(kernels_by_name);
    return module;
}
