/* A library that nearly exports the right symbol; and, where it is linked so, needs one that cannot
 * be found. */
int attest_get_kernels(void);
int attest_get_kernels(void) {
    return 0;
}
