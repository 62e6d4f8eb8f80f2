# CUDA sources on a CPU: read in this build and, installed, by find_package(attest).

# attest_simt_objects(NAME [CHECKED] [TRANSLATE] SOURCES x.cu...): CUDA sources as objects for a CPU.
# TRANSLATE: they are CUDA as nvcc takes it, with __shared__ and <<<>>>. A source's language belongs to
# its directory, so each becomes a C++ file of its own, that includes it or is its translation.
function(attest_simt_objects name)
    cmake_parse_arguments(ARG "CHECKED;TRANSLATE" "" "SOURCES" ${ARGN})
    set(translator ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/translate.py)
    set(units)
    foreach(source ${ARG_SOURCES})
        get_filename_component(path ${source} ABSOLUTE)
        get_filename_component(folder ${path} DIRECTORY)
        string(MAKE_C_IDENTIFIER "${name}_${source}" id)
        set(unit ${CMAKE_CURRENT_BINARY_DIR}/${id}.cpp)
        if(ARG_TRANSLATE)
            find_package(Python3 COMPONENTS Interpreter REQUIRED)
            add_custom_command(OUTPUT ${unit}
                COMMAND ${Python3_EXECUTABLE} ${translator} ${path} ${unit}
                DEPENDS ${path} ${translator} DEPFILE ${unit}.d VERBATIM)
        else()
            file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${path}\"\n")
        endif()
        list(APPEND units ${unit})
        list(APPEND folders ${folder})
    endforeach()
    add_library(${name} OBJECT ${units})
    target_link_libraries(${name} PRIVATE attest::simt_runtime)
    target_include_directories(${name} PRIVATE ${folders})
    target_compile_features(${name} PRIVATE cxx_std_20)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
    # nvcc and GPUs know no strict aliasing: a half2 read as a uint32_t is what was written.
    target_compile_options(${name} PRIVATE -fno-strict-aliasing)
    # `#pragma unroll` is nvcc's and clang's.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-unknown-pragmas>)
    if(ARG_CHECKED)
        # DWARF 4: addr2line of binutils 2.40 takes the files of DWARF 5 for one another.
        target_compile_options(${name} PRIVATE -fsanitize=thread,alignment -O1 -gdwarf-4
            "$<$<CXX_COMPILER_ID:GNU>:-Wno-tsan;--param;tsan-instrument-func-entry-exit=0>"
            "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>")
    endif()
endfunction()

# attest_simt_plugin(NAME [CHECKED] SOURCES glue.cpp... OBJECTS target...): a plug-in over such objects.
function(attest_simt_plugin name)
    cmake_parse_arguments(ARG "CHECKED" "" "SOURCES;OBJECTS" ${ARGN})
    add_library(${name} MODULE ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_OBJECTS} attest::simt_runtime)
    target_compile_features(${name} PRIVATE cxx_std_20)
    set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
    if(ARG_CHECKED)
        # The hooks' names are the sanitizer runtime's: they must be ours inside this library, whoever loads it.
        target_link_libraries(${name} PRIVATE attest::simt_checker attest::simt_runtime ${CMAKE_DL_LIBS})
        target_link_options(${name} PRIVATE -Wl,-Bsymbolic)
    endif()
endfunction()

# attest_add_simt_kernel(NAME SOURCES x.cu... glue.cpp... [TRANSLATE]): two plug-ins for attest, NAME.so and,
# with every memory access checked, NAME_checked.so. The glue exports attest_get_kernel.
function(attest_add_simt_kernel name)
    cmake_parse_arguments(ARG "TRANSLATE" "" "SOURCES" ${ARGN})
    set(cuda ${ARG_SOURCES})
    list(FILTER cuda INCLUDE REGEX "\\.cu$")
    set(glue ${ARG_SOURCES})
    list(FILTER glue EXCLUDE REGEX "\\.cu$")
    if(NOT cuda OR NOT glue)
        message(FATAL_ERROR "attest_add_simt_kernel(${name}): SOURCES names at least one .cu and the glue, a .cpp that "
                            "exports attest_get_kernel")
    endif()
    set(translate)
    if(ARG_TRANSLATE)
        set(translate TRANSLATE)
    endif()
    attest_simt_objects(${name}_objects ${translate} SOURCES ${cuda})
    attest_simt_plugin(${name} SOURCES ${glue} OBJECTS ${name}_objects)
    attest_simt_objects(${name}_checked_objects CHECKED ${translate} SOURCES ${cuda})
    attest_simt_plugin(${name}_checked CHECKED SOURCES ${glue} OBJECTS ${name}_checked_objects)
endfunction()
